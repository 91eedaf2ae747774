// How `node:util` shows values: Node's format, with its options. The log has a smaller one, `isolate/inspect.js`.
import { native, requireObject } from 'node:internal/base';
import * as types from 'node:util/types';

const { promiseState, proxied } = native('util');
export const custom = Symbol.for('nodejs.util.inspect.custom');
const identifier = /^[A-Za-z_][A-Za-z_0-9]*$/;
const { getOwnPropertyDescriptor, getPrototypeOf, keys, prototype: { hasOwnProperty, propertyIsEnumerable } } = Object;

export const defaultOptions = {
  showHidden: false, depth: 2, colors: false, customInspect: true, showProxy: false, maxArrayLength: 100, maxStringLength: 10000,
  breakLength: 80, compact: 3, sorted: false, getters: false, numericSeparator: false,
};

export const colors = {
  __proto__: null,
  reset: [0, 0], bold: [1, 22], dim: [2, 22], italic: [3, 23], underline: [4, 24], blink: [5, 25], inverse: [7, 27], hidden: [8, 28],
  strikethrough: [9, 29], doubleunderline: [21, 24], black: [30, 39], red: [31, 39], green: [32, 39], yellow: [33, 39], blue: [34, 39],
  magenta: [35, 39], cyan: [36, 39], white: [37, 39], bgBlack: [40, 49], bgRed: [41, 49], bgGreen: [42, 49], bgYellow: [43, 49],
  bgBlue: [44, 49], bgMagenta: [45, 49], bgCyan: [46, 49], bgWhite: [47, 49], framed: [51, 54], overlined: [53, 55], gray: [90, 39],
  grey: [90, 39], redBright: [91, 39], greenBright: [92, 39], yellowBright: [93, 39], blueBright: [94, 39], magentaBright: [95, 39],
  cyanBright: [96, 39], whiteBright: [97, 39], bgGray: [100, 49], bgRedBright: [101, 49], bgGreenBright: [102, 49],
  bgYellowBright: [103, 49], bgBlueBright: [104, 49], bgMagentaBright: [105, 49], bgCyanBright: [106, 49], bgWhiteBright: [107, 49],
};

export const styles = {
  __proto__: null,
  special: 'cyan', number: 'yellow', bigint: 'yellow', boolean: 'yellow', undefined: 'grey', null: 'bold', string: 'green',
  symbol: 'green', date: 'magenta', regexp: 'red', module: 'underline',
};

const plain = text => `${text}`;

function coloured(text, style) {
  const color = colors[styles[style]];
  return color === undefined ? `${text}` : `\u001b[${color[0]}m${text}\u001b[${color[1]}m`;
}

export const stripColors = text => text.replace(/[\u001b\u009b][[\]()#;?]*(?:(?:(?:[a-zA-Z\d]*(?:;[-a-zA-Z\d/#&.:=?%@~_]*)*)?\u0007)|(?:(?:\d{1,4}(?:;\d{0,4})*)?[\dA-PR-TZcf-ntqry=><~]))/g, '');
const widthOf = (text, ctx) => (ctx.colors ? stripColors(text) : text).length;

// ---- Primitives.

const ESCAPES = { '\b': '\\b', '\t': '\\t', '\n': '\\n', '\f': '\\f', '\r': '\\r', '\\': '\\\\' };

function escaped(char) {
  if (ESCAPES[char] !== undefined) return ESCAPES[char];
  const code = char.charCodeAt(0);
  return code > 0xff ? `\\u${code.toString(16)}` : `\\x${code.toString(16).toUpperCase().padStart(2, '0')}`;
}

export function quoted(text) {
  const mark = !text.includes("'") ? "'" : !text.includes('"') ? '"' : !text.includes('`') && !text.includes('${') ? '`' : "'";
  const inner = text.replace(/[\u0000-\u001f\u007f-\u009f\\]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, escaped);
  return mark + (mark === "'" ? inner.replaceAll("'", "\\'") : inner) + mark;
}

const separated = digits => digits.replace(/\B(?=(\d{3})+$)/g, '_');

function numberText(ctx, number) {
  if (Object.is(number, -0)) return '-0';
  const text = String(number);
  if (!ctx.numericSeparator || !/^-?\d+(\.\d+)?$/.test(text)) return text;
  const [whole, fraction] = text.split('.');
  const front = whole.startsWith('-') ? `-${separated(whole.slice(1))}` : separated(whole);
  return fraction === undefined ? front : `${front}.${fraction.replace(/(\d{3})(?=\d)/g, '$1_')}`;
}

function primitiveText(ctx, value) {
  switch (typeof value) {
    case 'string': {
      let text = value;
      let rest = '';
      if (text.length > ctx.maxStringLength) {
        const more = text.length - ctx.maxStringLength;
        rest = `... ${more} more character${more > 1 ? 's' : ''}`;
        text = text.slice(0, ctx.maxStringLength);
      }
      // A long text with lines goes over lines, where it is not the whole value.
      if (ctx.compact !== true && text.length > 16 && text.length > ctx.breakLength - ctx.indentation - 4) {
        const lines = text.match(/[^\n]*\n|[^\n]+$/g) ?? [text];
        if (lines.length > 1) return lines.map(line => ctx.stylize(quoted(line), 'string')).join(` +\n${' '.repeat(ctx.indentation + 2)}`) + rest;
      }
      return ctx.stylize(quoted(text), 'string') + rest;
    }
    case 'number': return ctx.stylize(numberText(ctx, value), 'number');
    case 'bigint': return ctx.stylize(`${ctx.numericSeparator ? separated(String(value)) : value}n`, 'bigint');
    case 'symbol': return ctx.stylize(String(value), 'symbol');
    case 'boolean': return ctx.stylize(`${value}`, 'boolean');
    default: return ctx.stylize(`${value}`, value === null ? 'null' : 'undefined');
  }
}

// ---- Names and keys.

/** The name of a value's class, of its own or of what it extends; null where there is none. */
function classNameOf(value) {
  for (let at = value; at !== null; at = getPrototypeOf(at)) {
    // `node:async_hooks` makes that of promises a getter.
    const made = at === Promise.prototype ? Promise : getOwnPropertyDescriptor(at, 'constructor')?.value;
    if (typeof made === 'function' && made.name !== '' && (at !== value || value instanceof made)) return made.name;
  }
  return null;
}

function prefixOf(name, tag, fallback, size = '') {
  if (name === null) return tag !== '' && fallback !== tag ? `[${fallback}${size}: null prototype] [${tag}] ` : `[${fallback}${size}: null prototype] `;
  return tag !== '' && name !== tag ? `${name}${size} [${tag}] ` : `${name}${size} `;
}

function shownKeys(ctx, value) {
  const symbols = Object.getOwnPropertySymbols(value);
  if (ctx.showHidden) return [...Object.getOwnPropertyNames(value), ...symbols];
  return [...keys(value), ...symbols.filter(key => propertyIsEnumerable.call(value, key))];
}

const isIndex = key => typeof key === 'string' && /^(0|[1-9]\d*)$/.test(key) && +key < 2 ** 32 - 1;
const otherKeys = (ctx, value) => shownKeys(ctx, value).filter(key => !isIndex(key));

// ---- Objects.

const OBJECT = 0, ARRAY = 1, ENTRIES = 2;

function property(ctx, value, key, depth, kind) {
  const descriptor = getOwnPropertyDescriptor(value, key) ?? { value: value[key], enumerable: true };
  let text;
  if ('value' in descriptor) {
    const deeper = ctx.compact !== true || kind !== OBJECT ? 2 : 3;
    ctx.indentation += deeper;
    text = shown(ctx, descriptor.value, depth);
    ctx.indentation -= deeper;
  } else if (descriptor.get !== undefined) {
    const label = descriptor.set === undefined ? 'Getter' : 'Getter/Setter';
    const reads = ctx.getters === true || (ctx.getters === 'get' && descriptor.set === undefined) || (ctx.getters === 'set' && descriptor.set !== undefined);
    text = ctx.stylize(reads ? readGetter(ctx, value, descriptor, label, depth) : `[${label}]`, 'special');
  } else {
    text = ctx.stylize(descriptor.set === undefined ? 'undefined' : '[Setter]', descriptor.set === undefined ? 'undefined' : 'special');
  }
  if (kind === ARRAY) return text;
  let name;
  if (typeof key === 'symbol') name = ctx.stylize(String(key), 'symbol');
  else if (key === '__proto__') name = "['__proto__']";
  else if (identifier.test(key)) name = ctx.stylize(key, 'name');
  else name = ctx.stylize(quoted(key), 'string');
  if (descriptor.enumerable === false) name = `[${typeof key === 'symbol' ? String(key) : key}]`;
  return `${name}: ${text}`;
}

function readGetter(ctx, value, { get }, label, depth) {
  try {
    const read = get.call(value);
    const text = shown(ctx, read, depth);
    return typeof read === 'object' && read !== null ? `[${label}] ${text}` : `[${label}: ${text}]`;
  } catch (error) {
    return `[${label}: <Inspection threw (${error?.message})>]`;
  }
}

const more = count => `... ${count} more item${count > 1 ? 's' : ''}`;

function arrayItems(ctx, value, depth) {
  const items = [];
  let at = 0;
  while (at < value.length && items.length < ctx.maxArrayLength) {
    if (hasOwnProperty.call(value, at)) {
      items.push(property(ctx, value, String(at), depth, ARRAY));
      at += 1;
      continue;
    }
    const from = at;
    while (at < value.length && !hasOwnProperty.call(value, at)) at += 1;
    items.push(ctx.stylize(`<${at - from} empty item${at - from > 1 ? 's' : ''}>`, 'undefined'));
  }
  if (at < value.length) items.push(more(value.length - at));
  return items;
}

function listItems(ctx, list, size, depth, show) {
  const max = Math.min(ctx.maxArrayLength, size);
  const items = [];
  ctx.indentation += 2;
  for (const item of list) {
    if (items.length >= max) break;
    items.push(show(item));
  }
  ctx.indentation -= 2;
  if (size > max) items.push(more(size - max));
  return items;
}

const hexOf = (ctx, memory) => {
  const bytes = new Uint8Array(memory, 0, Math.min(Math.max(0, ctx.maxArrayLength), memory.byteLength));
  const text = [...bytes].map(byte => byte.toString(16).padStart(2, '0')).join(' ');
  const rest = memory.byteLength - bytes.length;
  return `[${ctx.stylize('Uint8Contents', 'special')}]: <${text}${rest > 0 ? ` ... ${rest} more byte${rest > 1 ? 's' : ''}` : ''}>`;
};

function functionTitle(value, name, tag) {
  const source = Function.prototype.toString.call(value);
  if (source.startsWith('class') && source.endsWith('}') || isClass(value)) {
    const parent = getPrototypeOf(value)?.name;
    const extending = parent ? ` extends ${parent}` : '';
    const own = hasOwnProperty.call(value, 'name') && value.name ? ` ${value.name}` : ' (anonymous)';
    return `[class${own}${name !== 'Function' && name !== null ? ` [${name}]` : ''}${tag !== '' && name !== tag ? ` [${tag}]` : ''}${extending}]`;
  }
  let kind = 'Function';
  if (types.isGeneratorFunction(value)) kind = `Generator${kind}`;
  if (types.isAsyncFunction(value)) kind = `Async${kind}`;
  let text = `[${kind}`;
  if (name === null) text += ' (null prototype)';
  text += value.name === '' ? ' (anonymous)' : `: ${value.name}`;
  text += ']';
  if (name !== kind && name !== null && !['Function', 'AsyncFunction', 'GeneratorFunction', 'AsyncGeneratorFunction'].includes(name)) text += ` ${name}`;
  if (tag !== '' && name !== tag && tag !== kind) text += ` [${tag}]`;
  return text;
}

/** Functions lose their text in an isolate: a class shows by its prototype, which cannot be written. */
function isClass(value) {
  const descriptor = getOwnPropertyDescriptor(value, 'prototype');
  return descriptor !== undefined && descriptor.writable === false && !types.isGeneratorFunction(value)
    && getOwnPropertyDescriptor(value, 'arguments') === undefined;
}

function errorText(ctx, error, names) {
  const title = Error.prototype.toString.call(error);
  const stack = typeof error.stack === 'string' && error.stack !== '' ? error.stack.trimEnd() : '';
  // The engine's stack is its frames alone.
  let text = stack === '' ? title : /^\s+at /.test(stack) ? `${title}\n${stack}` : stack;
  for (const key of ['name', 'message', 'stack']) {
    const at = names.indexOf(key);
    if (at >= 0 && text.includes(String(error[key]))) names.splice(at, 1);
  }
  for (const key of ['cause', 'errors']) {
    if (hasOwnProperty.call(error, key) && !names.includes(key) && (key === 'cause' || Array.isArray(error.errors))) names.push(key);
  }
  if (!/\n\s+at /.test(text)) text = `[${text}]`;
  return ctx.indentation === 0 ? text : text.replaceAll('\n', `\n${' '.repeat(ctx.indentation)}`);
}

const BOXES = [
  [types.isNumberObject, 'Number'], [types.isStringObject, 'String'], [types.isBooleanObject, 'Boolean'],
  [types.isBigIntObject, 'BigInt'], [types.isSymbolObject, 'Symbol'],
];

/** What is special of a value: braces, a text in front (`base`), and items before its properties. */
function anatomy(ctx, value, depth, name, tag) {
  const prefix = (fallback, size) => prefixOf(name, tag, fallback, size);
  if (Array.isArray(value)) {
    const front = name !== 'Array' || tag !== '' ? prefix('Array', `(${value.length})`) : '';
    return { braces: [`${front}[`, ']'], names: otherKeys(ctx, value), items: () => arrayItems(ctx, value, depth), kind: ARRAY };
  }
  if (types.isSet(value)) {
    return { braces: [`${prefix('Set', `(${value.size})`)}{`, '}'], kind: OBJECT,
      items: () => listItems(ctx, value, value.size, depth, item => shown(ctx, item, depth)) };
  }
  if (types.isMap(value)) {
    return { braces: [`${prefix('Map', `(${value.size})`)}{`, '}'], kind: OBJECT,
      items: () => listItems(ctx, value, value.size, depth, ([key, item]) => `${shown(ctx, key, depth)} => ${shown(ctx, item, depth)}`) };
  }
  if (types.isTypedArray(value)) {
    const fallback = value[Symbol.toStringTag];
    return { braces: [`${prefixOf(name, tag === fallback ? '' : tag, fallback, `(${value.length})`)}[`, ']'], names: otherKeys(ctx, value), kind: ARRAY,
      items: () => listItems(ctx, value, value.length, depth, item => primitiveText(ctx, item)) };
  }
  if (types.isMapIterator(value) || types.isSetIterator(value)) {
    // A copy of an iterator cannot be had, and reading it would take from it.
    return { braces: [`[${tag}] {`, '}'], items: () => ['<items unknown>'], kind: OBJECT };
  }
  if (types.isArgumentsObject(value)) return { braces: ['[Arguments] {', '}'], kind: OBJECT };
  if (typeof value === 'function') return { base: ctx.stylize(functionTitle(value, name, tag), 'special'), isBare: true };
  if (types.isRegExp(value)) return { base: ctx.stylize(RegExp.prototype.toString.call(value), 'regexp'), isBare: true };
  if (types.isDate(value)) {
    const text = Number.isNaN(value.getTime()) ? 'Invalid Date' : Date.prototype.toISOString.call(value);
    return { base: ctx.stylize(text, 'date'), isBare: true };
  }
  if (types.isNativeError(value) || value instanceof Error) {
    const names = shownKeys(ctx, value);
    return { base: errorText(ctx, value, names), names, isBare: true };
  }
  if (types.isAnyArrayBuffer(value)) {
    return { braces: [`${prefix('ArrayBuffer')}{`, '}'], kind: OBJECT,
      items: () => [hexOf(ctx, value), `byteLength: ${ctx.stylize(`${value.byteLength}`, 'number')}`] };
  }
  if (types.isDataView(value)) {
    return { braces: [`${prefix('DataView')}{`, '}'], kind: OBJECT,
      items: () => ['byteLength', 'byteOffset', 'buffer'].map(key => {
        ctx.indentation += 2;
        const text = shown(ctx, value[key], depth);
        ctx.indentation -= 2;
        return `${key}: ${text}`;
      }) };
  }
  if (types.isPromise(value)) {
    return { braces: [`${prefix('Promise')}{`, '}'], kind: OBJECT, items: () => {
      const state = promiseState(value);
      if (state === undefined) return [ctx.stylize('<pending>', 'special')];
      ctx.indentation += 2;
      const text = shown(ctx, state[1], depth);
      ctx.indentation -= 2;
      return [state[0] ? text : `${ctx.stylize('<rejected>', 'special')} ${text}`];
    } };
  }
  if (types.isWeakSet(value) || types.isWeakMap(value)) {
    return { braces: [`${prefix(types.isWeakSet(value) ? 'WeakSet' : 'WeakMap')}{`, '}'], items: () => [ctx.stylize('<items unknown>', 'special')], kind: OBJECT };
  }
  if (types.isModuleNamespaceObject(value)) return { braces: ['[Module: null prototype] {', '}'], kind: OBJECT };
  const box = BOXES.find(([check]) => check(value));
  if (box !== undefined) {
    const inner = primitiveText({ ...ctx, stylize: plain }, value.valueOf());
    const own = name !== null && name !== box[1] ? ` (${name})` : '';
    const names = shownKeys(ctx, value).filter(key => box[1] !== 'String' || !(isIndex(key) && +key < value.length));
    return { base: ctx.stylize(`[${box[1]}${own}: ${inner}]`, box[1].toLowerCase()), names, isBare: true };
  }
  if (name === 'Object' && tag === '') return { braces: ['{', '}'], kind: OBJECT };
  return { braces: [`${prefix('Object')}{`, '}'], kind: OBJECT };
}

function objectText(ctx, value, depth) {
  const name = classNameOf(value);
  let tag = value[Symbol.toStringTag];
  if (typeof tag !== 'string' || tag === '' || (hasOwnProperty.call(value, Symbol.toStringTag) && (ctx.showHidden || propertyIsEnumerable.call(value, Symbol.toStringTag)))) tag = '';
  const { base = '', braces = ['{', '}'], names = shownKeys(ctx, value), items = () => [], kind = OBJECT, isBare = false } = anatomy(ctx, value, depth + 1, name, tag);
  if (isBare && names.length === 0) return base;
  if (ctx.depth !== null && depth > ctx.depth) return ctx.stylize(`[${prefixOf(name, tag, Array.isArray(value) ? 'Array' : 'Object').trimEnd()}]`, 'special');
  ctx.seen.push(value);
  ctx.deepest = depth;
  const output = items();
  for (const key of names) output.push(property(ctx, value, key, depth + 1, ENTRIES));
  ctx.seen.pop();
  let front = base;
  const circular = ctx.circular.get(value);
  if (circular !== undefined) {
    const mark = ctx.stylize(`<ref *${circular}>`, 'special');
    if (ctx.compact !== true) front = front === '' ? mark : `${mark} ${front}`;
    else braces[0] = `${mark} ${braces[0]}`;
  }
  if (ctx.sorted) {
    const compare = typeof ctx.sorted === 'function' ? ctx.sorted : undefined;
    if (kind !== ARRAY) output.sort(compare);
  }
  if (output.length === 0) return `${front === '' ? '' : `${front} `}${braces[0]}${braces[1]}`;
  return joined(ctx, output, front, braces, kind, depth, value);
}

function shown(ctx, value, depth) {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return primitiveText(ctx, value);
  const target = proxied(value);
  if (target !== undefined) {
    // The handler of a proxy cannot be had.
    return `Proxy(${shown(ctx, target, depth)})`;
  }
  if (ctx.customInspect) {
    const show = value[custom];
    if (typeof show === 'function' && show !== inspect && !isPrototypeOf(value)) {
      const rest = ctx.depth === null ? null : ctx.depth - depth;
      const made = show.call(value, rest, optionsOf(ctx), inspect);
      if (made !== value) return typeof made === 'object' && made !== null ? shown(ctx, made, depth) : `${made}`.replaceAll('\n', `\n${' '.repeat(ctx.indentation)}`);
    }
  }
  if (ctx.seen.includes(value)) {
    if (!ctx.circular.has(value)) ctx.circular.set(value, ctx.circular.size + 1);
    return ctx.stylize(`[Circular *${ctx.circular.get(value)}]`, 'special');
  }
  return objectText(ctx, value, depth);
}

const isPrototypeOf = value => hasOwnProperty.call(value, 'constructor') && value.constructor?.prototype === value;

function optionsOf(ctx) {
  const { seen, circular, indentation, deepest, ...options } = ctx;
  void seen, circular, indentation, deepest;
  return options;
}

// ---- Lines.

/** Whether items fit in one line. `start`: what else is in it. */
function fits(ctx, output, start, base) {
  let length = output.length + start;
  if (length + output.length > ctx.breakLength) return false;
  for (const item of output) {
    length += widthOf(item, ctx);
    if (length > ctx.breakLength) return false;
  }
  return base === '' || !base.includes('\n');
}

function joined(ctx, output, base, braces, kind, depth, value) {
  const front = base === '' ? '' : `${base} `;
  const pad = `\n${' '.repeat(ctx.indentation)}`;
  if (ctx.compact === true) {
    if (fits(ctx, output, 0, base)) return `${braces[0]}${base === '' ? '' : ` ${base}`} ${output.join(', ')} ${braces[1]}`;
    const line = base === '' && braces[0].length === 1 ? ' ' : `${base === '' ? '' : ` ${base}`}${pad}  `;
    return `${braces[0]}${line}${output.join(`,${pad}  `)} ${braces[1]}`;
  }
  let rows = output;
  if (typeof ctx.compact === 'number' && ctx.compact >= 1) {
    if (kind === ARRAY && output.length > 6) rows = inColumns(ctx, output, value);
    // So many levels at most go into one line, counted from the innermost.
    if (ctx.deepest - depth < ctx.compact && rows.length === output.length) {
      const start = output.length + ctx.indentation + braces[0].length + base.length + 10;
      if (fits(ctx, output, start, base)) {
        const line = output.join(', ');
        if (!line.includes('\n')) return `${front}${braces[0]} ${line} ${braces[1]}`;
      }
    }
  }
  return `${front}${braces[0]}${pad}  ${rows.join(`,${pad}  `)}${pad}${braces[1]}`;
}

/** Items of a long array in columns, where they are short enough. */
function inColumns(ctx, output, value) {
  const hasMore = ctx.maxArrayLength < output.length;
  const count = hasMore ? output.length - 1 : output.length;
  const widths = output.slice(0, count).map(item => widthOf(item, ctx));
  const total = widths.reduce((sum, width) => sum + width + 2, 0);
  const widest = Math.max(...widths);
  const cell = widest + 2;
  if (cell * 3 + ctx.indentation >= ctx.breakLength || (total / cell <= 5 && widest > 6)) return output;
  const biased = Math.max(cell - 3 - Math.sqrt(cell - total / output.length), 1);
  const columns = Math.min(
    Math.round(Math.sqrt(2.5 * biased * count) / biased), Math.floor((ctx.breakLength - ctx.indentation) / cell), ctx.compact * 4, 15);
  if (columns <= 1) return output;
  const columnWidths = [];
  for (let column = 0; column < columns; column += 1) {
    let width = 0;
    for (let at = column; at < count; at += columns) width = Math.max(width, widths[at]);
    columnWidths.push(width + 2);
  }
  const alignsRight = value !== undefined && output.every((_, at) => ['number', 'bigint'].includes(typeof value[at]));
  const rows = [];
  for (let first = 0; first < count; first += columns) {
    const end = Math.min(first + columns, count);
    let row = '';
    for (let at = first; at < end; at += 1) {
      const isLast = at === end - 1;
      const extra = output[at].length - widths[at];
      const text = isLast ? output[at] : `${output[at]}, `;
      if (alignsRight) row += text.padStart(columnWidths[at - first] + extra - (isLast ? 2 : 0));
      else row += isLast ? text : text.padEnd(columnWidths[at - first] + extra);
    }
    rows.push(row);
  }
  if (hasMore) rows.push(output[count]);
  return rows;
}

// ---- What is exported.

export function inspect(value, options = undefined, ...old) {
  const given = typeof options === 'object' && options !== null ? options
    : typeof options === 'boolean' ? { showHidden: options, depth: old[0] === undefined ? 2 : old[0], colors: old[1] === true } : {};
  const ctx = { ...defaultOptions, ...given, seen: [], circular: new Map(), indentation: 0, deepest: 0 };
  for (const key of keys(defaultOptions)) if (ctx[key] === undefined) ctx[key] = defaultOptions[key];
  if (ctx.depth === Infinity) ctx.depth = null;
  ctx.stylize ??= ctx.colors ? coloured : plain;
  if (ctx.colors && ctx.stylize === plain) ctx.stylize = coloured;
  if (ctx.maxArrayLength === null) ctx.maxArrayLength = Infinity;
  if (ctx.maxStringLength === null) ctx.maxStringLength = Infinity;
  return shown(ctx, value, 0);
}
Object.assign(inspect, { custom, colors, styles });
Object.defineProperty(inspect, 'defaultOptions', {
  get: () => defaultOptions,
  set(options) {
    requireObject(options, 'options');
    Object.assign(defaultOptions, options);
  },
});

/** Whether a value's own `toString` is what `%s` shows. */
function hasOwnText(value) {
  if (types.isProxy(value) || typeof value.toString !== 'function') return false;
  if (hasOwnProperty.call(value, 'toString')) return true;
  for (let at = value; at !== null; at = getPrototypeOf(at)) {
    if (!hasOwnProperty.call(at, 'constructor') && at !== Promise.prototype) continue;
    if (!hasOwnProperty.call(at, 'toString') && at === value) continue;
    const made = at === Promise.prototype ? Promise : getOwnPropertyDescriptor(at, 'constructor')?.value;
    return hasOwnProperty.call(at, 'toString') && typeof made === 'function' && !isBuiltIn(made.name);
  }
  return false;
}

const isBuiltIn = name => typeof globalThis[name] === 'function' && /^[A-Z]/.test(name) && name !== 'Date' && name !== 'Error';

function directive(kind, value, options) {
  switch (kind) {
    case 's':
      if (typeof value === 'number') return numberText({ ...defaultOptions, ...options }, value);
      if (typeof value === 'bigint') return `${value}n`;
      if (typeof value === 'function' && !hasOwnProperty.call(value, 'toString')) return isClass(value) ? inspect(value, { ...options, depth: 0 }) : String(value);
      if (typeof value !== 'object' || value === null) return String(value);
      if (types.isDate(value) && !Number.isNaN(value.getTime())) return value.toISOString();
      return hasOwnText(value) || value instanceof Error ? String(value) : inspect(value, { ...options, depth: 0, colors: false, compact: 3 });
    case 'j':
      try {
        return JSON.stringify(value);
      } catch (error) {
        if (/circular/i.test(error.message)) return '[Circular]';
        throw error;
      }
    case 'd':
      if (typeof value === 'bigint') return `${value}n`;
      return typeof value === 'symbol' || typeof value === 'object' && value === null ? String(NaN) : numberText({ ...defaultOptions, ...options }, Number(value));
    case 'i':
      if (typeof value === 'bigint') return `${value}n`;
      return typeof value === 'symbol' ? 'NaN' : numberText({ ...defaultOptions, ...options }, parseInt(value, 10));
    case 'f': return typeof value === 'symbol' ? 'NaN' : numberText({ ...defaultOptions, ...options }, parseFloat(value));
    case 'o': return inspect(value, { ...options, showHidden: true, showProxy: true, depth: 4 });
    case 'O': return inspect(value, options);
    default: return '';
  }
}

export function formatWithOptions(options, ...args) {
  requireObject(options, 'inspectOptions');
  const [first] = args;
  let at = 0;
  let text = '';
  if (typeof first === 'string') {
    if (args.length === 1) return first;
    at = 1;
    text = first.replace(/%([sdifjoOc%])/g, (whole, kind) => {
      if (kind === '%') return '%';
      if (at >= args.length) return whole;
      at += 1;
      return directive(kind, args[at - 1], options);
    });
  }
  for (; at < args.length; at += 1) {
    const value = args[at];
    text += `${at > 0 ? ' ' : ''}${typeof value === 'string' ? value : inspect(value, options)}`;
  }
  return text;
}

export const format = (...args) => formatWithOptions({}, ...args);

