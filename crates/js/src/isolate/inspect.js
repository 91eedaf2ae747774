// How values look in a log: the format of `console.log`, near to Node's `util.inspect` with its defaults.
const DEPTH_MAX = 2, ITEMS_MAX = 100, STRING_LEN_MAX = 10_000, WIDTH_MAX = 72;
const identifier = /^[A-Za-z_$][\w$]*$/;

function quote(string) {
  const cut = string.length > STRING_LEN_MAX ? string.slice(0, STRING_LEN_MAX) : string;
  const rest = string.length - cut.length;
  const mark = !cut.includes("'") ? "'" : !cut.includes('"') ? '"' : !cut.includes('`') ? '`' : "'";
  const escaped = JSON.stringify(cut).slice(1, -1).replaceAll('\\"', '"');
  return mark + (mark === "'" ? escaped.replaceAll("'", "\\'") : escaped) + mark + (rest > 0 ? `... ${rest} more characters` : '');
}

function nameOfClass(value) {
  for (let at = value; at !== null; at = Object.getPrototypeOf(at)) {
    // `node:async_hooks` makes that of promises a getter.
    const constructor = at === Promise.prototype ? Promise : Object.getOwnPropertyDescriptor(at, 'constructor')?.value;
    if (typeof constructor === 'function' && constructor.name !== '') return constructor.name;
  }
  return null;
}

function join(open, items, close, depth) {
  if (items.length === 0) return open + close;
  const line = `${open} ${items.join(', ')} ${close}`;
  if (line.length <= WIDTH_MAX && !line.includes('\n')) return line;
  const pad = '  '.repeat(depth + 1);
  return `${open}\n${pad}${items.join(`,\n${pad}`)}\n${'  '.repeat(depth)}${close}`;
}

function inspectError(error, depth, seen) {
  const title = String(error);
  const stack = typeof error.stack === 'string' ? error.stack.trimEnd() : '';
  let text = stack === '' ? `[${title}]` : stack.startsWith(title) ? stack : `${title}\n${stack}`;
  const own = Object.keys(error).filter(key => key !== 'stack' && key !== 'message');
  const items = own.map(key => `${key}: ${inspectValue(error[key], depth + 1, seen)}`);
  if (Object.hasOwn(error, 'cause') && !own.includes('cause')) items.push(`[cause]: ${inspectValue(error.cause, depth + 1, seen)}`);
  if (Array.isArray(error.errors)) items.push(`[errors]: ${inspectValue(error.errors, depth + 1, seen)}`);
  if (items.length > 0) text += ` ${join('{', items, '}', depth)}`;
  return text;
}

function properties(value, depth, seen, keys) {
  return keys.slice(0, ITEMS_MAX).map(key => {
    const name = typeof key === 'symbol' ? `[${String(key)}]` : identifier.test(key) ? key : quote(key);
    const { get, set, value: own } = Object.getOwnPropertyDescriptor(value, key);
    if (get) return `${name}: [Getter${set ? '/Setter' : ''}]`;
    if (set) return `${name}: [Setter]`;
    return `${name}: ${inspectValue(own, depth + 1, seen)}`;
  }).concat(keys.length > ITEMS_MAX ? [`... ${keys.length - ITEMS_MAX} more items`] : []);
}

function list(values, size, depth, seen) {
  const items = [];
  for (const value of values) {
    if (items.length === ITEMS_MAX) {
      items.push(`... ${size - ITEMS_MAX} more items`);
      break;
    }
    items.push(inspectValue(value, depth + 1, seen));
  }
  return items;
}

function enumerableKeys(value) {
  const isShown = key => Object.prototype.propertyIsEnumerable.call(value, key);
  return Reflect.ownKeys(value).filter(isShown);
}

function inspectObject(value, depth, seen) {
  const name = nameOfClass(value);
  const tag = value[Symbol.toStringTag];
  const keys = enumerableKeys(value);
  const isTagged = typeof tag === 'string' && tag !== '' && tag !== name;
  const title = `${name ?? '[Object: null prototype]'}${isTagged ? ` [${tag}]` : ''}`;
  const sized = size => `${title}(${size})`;
  const nested = () => properties(value, depth, seen, keys);

  if (typeof value === 'function') {
    const kind = /^class\b/.test(Function.prototype.toString.call(value)) ? 'class' : name ?? 'Function';
    const shown = kind === 'class' ? `[class ${value.name || '(anonymous)'}]` : `[${kind}${value.name ? `: ${value.name}` : ' (anonymous)'}]`;
    return keys.length === 0 ? shown : join(`${shown} {`, nested(), '}', depth);
  }
  if (value instanceof Error) return inspectError(value, depth, seen);
  if (value instanceof RegExp) return String(value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (value instanceof Promise) return `${title} { <state> }`;
  if (value instanceof WeakMap || value instanceof WeakSet) return `${title} { <items unknown> }`;
  if (value instanceof Number || value instanceof String || value instanceof Boolean) {
    return `[${name}: ${inspectValue(value.valueOf(), depth, seen)}]`;
  }
  if (depth > DEPTH_MAX) return Array.isArray(value) ? '[Array]' : `[${title}]`;
  if (Array.isArray(value)) {
    const rest = keys.filter(key => typeof key === 'symbol' || String(key >>> 0) !== key);
    const items = [...list(value, value.length, depth, seen), ...properties(value, depth, seen, rest)];
    return join(name === 'Array' ? '[' : `${sized(value.length)} [`, items, ']', depth);
  }
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
    return join(`${sized(value.length)} [`, list(value, value.length, depth, seen), ']', depth);
  }
  if (value instanceof ArrayBuffer) return `${title} { byteLength: ${value.byteLength} }`;
  if (value instanceof Map) {
    const entries = [...value.entries()].slice(0, ITEMS_MAX);
    const items = entries.map(([key, item]) => `${inspectValue(key, depth + 1, seen)} => ${inspectValue(item, depth + 1, seen)}`);
    return join(`${sized(value.size)} {`, [...items, ...nested()], '}', depth);
  }
  if (value instanceof Set) {
    return join(`${sized(value.size)} {`, [...list(value, value.size, depth, seen), ...nested()], '}', depth);
  }
  return join(title === 'Object' ? '{' : `${title} {`, nested(), '}', depth);
}

function inspectValue(value, depth, seen) {
  switch (typeof value) {
    case 'string': return quote(value);
    case 'bigint': return `${value}n`;
    case 'number': return Object.is(value, -0) ? '-0' : String(value);
    case 'symbol': return String(value);
    case 'undefined': case 'boolean': return String(value);
  }
  if (value === null) return 'null';
  if (seen.includes(value)) {
    seen.circular = value;
    return '[Circular *1]';
  }
  seen.push(value);
  try {
    const text = inspectObject(value, depth, seen);
    return seen.circular === value ? `<ref *1> ${text}` : text;
  } catch {
    // A getter or a proxy of the handler threw: a log line is no place to fail.
    return '[unreadable]';
  } finally {
    seen.pop();
  }
}

function format(args) {
  let rest = args;
  let text = '';
  if (typeof args[0] === 'string') {
    let next = 1;
    text = args[0].replace(/%[sdifjoOc%]/g, directive => {
      if (directive === '%%') return '%';
      if (next >= args.length) return directive;
      const value = args[next];
      next += 1;
      switch (directive) {
        case '%s': return typeof value === 'string' ? value : inspectValue(value, 0, []);
        case '%d': return typeof value === 'object' ? 'NaN' : String(Number(value));
        case '%i': return typeof value === 'object' ? 'NaN' : String(parseInt(value, 10));
        case '%f': return typeof value === 'symbol' ? 'NaN' : String(parseFloat(value));
        case '%j': return JSON.stringify(value);
        case '%c': return '';
        default: return inspectValue(value, 0, []);
      }
    });
    rest = args.slice(next);
  }
  const shown = rest.map(value => typeof value === 'string' ? value : inspectValue(value, 0, []));
  return typeof args[0] === 'string' ? [text, ...shown].join(' ') : shown.join(' ');
}

export default function (native, internals) {
  internals.inspect = value => inspectValue(value, 0, []);
  internals.format = format;
}
