// The life of `using` declarations of one block: `u` and `a` take resources, `e` is what the block threw, `d` disposes
// in reverse order. With an `await using` among them `d` answers a promise.
const disposeSymbol = Symbol.dispose ?? Symbol.for("Symbol.dispose");
const asyncDisposeSymbol = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

function suppressed(error, earlier) {
  if (typeof SuppressedError === "function") return new SuppressedError(error, earlier);
  const both = new Error("an error was suppressed during disposal");
  both.name = "SuppressedError";
  both.error = error;
  both.suppressed = earlier;
  return both;
}

function methodOf(value, isAsync) {
  if (Object(value) !== value) {
    throw new TypeError("a `using` declaration takes an object, a function, null or undefined");
  }
  let method = isAsync ? value[asyncDisposeSymbol] : undefined;
  if (method === undefined || method === null) {
    const dispose = value[disposeSymbol];
    // What a synchronous method answers is not waited for.
    method = isAsync && typeof dispose === "function" ? function () { dispose.call(this); } : dispose;
  }
  if (typeof method !== "function") throw new TypeError("the object cannot be disposed of");
  return method;
}

export default function usingCtx() {
  const nothing = {};
  const resources = [];
  function take(isAsync, value) {
    if (value !== null && value !== undefined) {
      resources.push({ value, method: methodOf(value, isAsync), isAsync });
    } else if (isAsync) {
      resources.push({ value, method() {}, isAsync });
    }
    return value;
  }
  return {
    e: nothing,
    u: (value) => take(false, value),
    a: (value) => take(true, value),
    d() {
      let thrown = this.e;
      const fail = (error) => {
        thrown = thrown === nothing ? error : suppressed(error, thrown);
      };
      const next = () => {
        while (resources.length > 0) {
          const { value, method, isAsync } = resources.pop();
          try {
            const answer = method.call(value);
            if (isAsync) return Promise.resolve(answer).then(next, (error) => { fail(error); return next(); });
          } catch (error) {
            fail(error);
            if (isAsync) return Promise.resolve().then(next);
          }
        }
        if (thrown !== nothing) throw thrown;
      };
      return next();
    },
  };
}
