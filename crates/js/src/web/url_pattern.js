// URLPattern (URL Pattern Standard).
export default function (native, internals) {
  internals.load('url');
  const { illegalInvocation, toDictionary, toUsvString } = internals;
  const COMPONENTS = ['protocol', 'username', 'password', 'hostname', 'port', 'pathname', 'search', 'hash'];

  // A string, or a dictionary of which only the known members count, as JSON for Rust.
  function toInput(value, what) {
    if (typeof value !== 'object' || value === null || internals.isUrl(value)) return JSON.stringify(toUsvString(value));
    const init = {};
    const given = toDictionary(value, what);
    for (const name of [...COMPONENTS, 'baseURL']) if (given[name] !== undefined) init[name] = toUsvString(given[name]);
    return JSON.stringify(init);
  }

  let stateOf;
  class URLPattern {
    // { parts, hasRegExpGroups }: `parts` by component { pattern, expression, names }.
    #state;
    static {
      stateOf = (pattern) => {
        if (typeof pattern !== 'object' || pattern === null || !(#state in pattern)) throw illegalInvocation();
        return pattern.#state;
      };
    }
    constructor(input = {}, baseURL = undefined, options = undefined) {
      const hasBase = typeof baseURL === 'string' || options !== undefined;
      const { ignoreCase } = toDictionary(hasBase ? options : baseURL, 'new URLPattern');
      const base = hasBase && baseURL !== undefined ? toUsvString(baseURL) : undefined;
      const parsed = JSON.parse(native.parse(toInput(input, 'new URLPattern'), base, Boolean(ignoreCase)));
      const parts = {};
      for (const name of COMPONENTS) {
        const { patternString, regexpString, groupNameList } = parsed[name];
        parts[name] = {
          pattern: patternString,
          expression: compile(regexpString, ignoreCase ? 'ui' : 'u'),
          names: groupNameList,
        };
      }
      this.#state = { parts, hasRegExpGroups: parsed.hasRegexpGroups };
    }
    get hasRegExpGroups() { return stateOf(this).hasRegExpGroups; }
    test(input = {}, baseURL = undefined) { return match(stateOf(this), input, baseURL) !== null; }
    exec(input = {}, baseURL = undefined) { return match(stateOf(this), input, baseURL); }
  }
  for (const name of COMPONENTS) {
    const accessor = { get [name]() { return stateOf(this).parts[name].pattern; } };
    Object.defineProperty(URLPattern.prototype, name, Object.getOwnPropertyDescriptor(accessor, name));
  }
  internals.interface(URLPattern);

  function compile(source, flags) {
    try {
      return new RegExp(source, flags);
    } catch (error) {
      throw new TypeError(`Failed to parse a URLPattern: ${error.message}`);
    }
  }

  function match({ parts }, input, baseURL) {
    const base = baseURL === undefined ? undefined : toUsvString(baseURL);
    const text = native.input(toInput(input, "exec' on 'URLPattern"), base);
    if (text === undefined || text === null) return null;
    const given = JSON.parse(text);
    const result = { inputs: base === undefined ? [input] : [input, base] };
    for (const name of COMPONENTS) {
      const { expression, names } = parts[name];
      const found = expression.exec(given[name]);
      if (found === null) return null;
      const groups = {};
      for (let index = 0; index < names.length; index++) groups[names[index]] = found[index + 1];
      result[name] = { input: given[name], groups };
    }
    return result;
  }

  return { URLPattern };
}
