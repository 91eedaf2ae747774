// `node:querystring`: text of a form to an object, and back.
import { coded, provide } from 'node:internal/base';

const { fromCharCode, fromCodePoint } = String;

/** Percent-encodes what a query may not hold as it is. Throws URIError for half of a surrogate pair at the end. */
export function escape(value) {
  if (typeof value !== 'string') value = typeof value === 'object' ? String(value) : `${value}`;
  return encodeURIComponent(value.isWellFormed() ? value : value.replace(/[\ud800-\udfff]([^]?)/g, paired));
}

/** Node takes whatever follows half of a pair for the other half. */
function paired(both, second) {
  if (second !== '') return fromCodePoint(0x10000 + ((both.charCodeAt(0) & 0x3ff) << 10 | second.charCodeAt(0) & 0x3ff));
  throw coded(new URIError('URI malformed'), 'ERR_INVALID_URI');
}

/** The bytes of a percent-encoded text; what is no such code is the low byte of its character. */
function bytesOf(text) {
  const bytes = new Uint8Array(text.length);
  let length = 0;
  for (let at = 0; at < text.length; at += 1) {
    const digits = text[at] === '%' ? text.slice(at + 1, at + 3) : '';
    if (/^[0-9a-fA-F]{2}$/.test(digits)) {
      bytes[length++] = parseInt(digits, 16);
      at += 2;
    } else {
      bytes[length++] = text.charCodeAt(at);
    }
  }
  return bytes.subarray(0, length);
}

/** Decodes percent codes. Never throws: bytes that are not UTF-8 become U+FFFD. */
export function unescape(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytesOf(`${text}`));
  }
}

function primitive(value) {
  switch (typeof value) {
    case 'string':
      return value;
    case 'number':
      return Number.isFinite(value) ? `${value}` : '';
    case 'bigint':
    case 'boolean':
      return `${value}`;
    default:
      return '';
  }
}

export function stringify(object, separator, equals, options) {
  const between = separator || '&';
  const is = equals || '=';
  // Not `escape` itself: whoever replaces `querystring.escape` is asked.
  const encode = typeof options?.encodeURIComponent === 'function' ? options.encodeURIComponent : querystring.escape;
  if (object === null || typeof object !== 'object') return '';
  const pairs = [];
  for (const key of Object.keys(object)) {
    const name = encode(primitive(key)) + is;
    const value = object[key];
    for (const item of Array.isArray(value) ? value : [value]) pairs.push(name + encode(primitive(item)));
  }
  return pairs.join(between);
}

/** An object without prototype: a string per name, an array where a name comes more than once. */
export function parse(text, separator, equals, options) {
  const found = Object.create(null);
  if (typeof text !== 'string' || text.length === 0) return found;
  const between = separator ? `${separator}` : '&';
  const is = equals ? `${equals}` : '=';
  const decode = typeof options?.decodeURIComponent === 'function' ? options.decodeURIComponent : querystring.unescape;
  const isCustom = decode !== unescape;
  const decoded = part => {
    const spaced = part.replaceAll('+', isCustom ? '%20' : ' ');
    if (!isCustom && !/%[0-9a-fA-F]{2}/.test(spaced)) return spaced;
    try {
      return decode(spaced);
    } catch {
      return unescape(spaced);
    }
  };
  // 1,000 pairs, as Node has it; 0 and less: no bound.
  const max = typeof options?.maxKeys === 'number' ? options.maxKeys : 1000;
  let count = 0;
  for (const pair of text.split(between)) {
    if (pair === '') continue;
    if (max > 0 && count === max) break;
    count += 1;
    const at = pair.indexOf(is);
    const name = decoded(at < 0 ? pair : pair.slice(0, at));
    const value = at < 0 ? '' : decoded(pair.slice(at + is.length));
    if (!(name in found)) found[name] = value;
    else if (Array.isArray(found[name])) found[name].push(value);
    else found[name] = [found[name], value];
  }
  return found;
}

export { stringify as encode, parse as decode };

const querystring = { escape, unescape, stringify, encode: stringify, parse, decode: parse };
export default provide('node:querystring', querystring);
