// What `require` of an ES module answers: its exports as they are when they are read, marked so that generated code
// knows that `default` is the default export. One object for each module.
export function toCommonJs(namespace) {
  const found = toCommonJs.known.get(namespace);
  if (found !== undefined) return found;
  const exports = {};
  for (const name of Reflect.ownKeys(namespace)) {
    if (typeof name === "symbol") continue;
    Object.defineProperty(exports, name, { enumerable: true, get: () => namespace[name] });
  }
  if (!Object.hasOwn(exports, "__esModule")) Object.defineProperty(exports, "__esModule", { value: true });
  toCommonJs.known.set(namespace, exports);
  return exports;
}
toCommonJs.known = new WeakMap();
