// `node:string_decoder`: text of bytes that come in pieces, which may end within a character.
import { Buffer } from 'node:buffer';
import { coded, provide, wrongType } from 'node:internal/base';

const CANONICAL = { ucs2: 'utf16le', 'ucs-2': 'utf16le', 'utf-16le': 'utf16le', 'utf-8': 'utf8', binary: 'latin1' };

/** How many bytes the character that begins with this byte has: 0 for a byte that begins none. */
function widthOf(byte) {
  if (byte >= 0xc2 && byte <= 0xdf) return 2;
  if (byte >= 0xe0 && byte <= 0xef) return 3;
  if (byte >= 0xf0 && byte <= 0xf4) return 4;
  return 0;
}

/** Whether the second byte may follow the first one in UTF-8. */
function mayFollow(first, second) {
  if ((second & 0xc0) !== 0x80) return false;
  if (first === 0xe0) return second >= 0xa0;
  if (first === 0xed) return second < 0xa0;
  if (first === 0xf0) return second >= 0x90;
  if (first === 0xf4) return second < 0x90;
  return true;
}

/** Bytes at the end that are the beginning of a character, and how many that has. */
function openUtf8(bytes) {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const at = bytes.length - back;
    if ((bytes[at] & 0xc0) === 0x80) continue;
    const width = widthOf(bytes[at]);
    if (width <= back) return [0, 0];
    if (back > 1 && !mayFollow(bytes[at], bytes[at + 1])) return [0, 0];
    return [back, width];
  }
  return [0, 0];
}

function openUtf16(bytes) {
  if (bytes.length % 2 === 1) {
    const isPair = bytes.length >= 3 && isHigh(bytes, bytes.length - 3);
    return isPair ? [3, 4] : [1, 2];
  }
  return bytes.length >= 2 && isHigh(bytes, bytes.length - 2) ? [2, 4] : [0, 0];
}

const isHigh = (bytes, at) => (bytes[at + 1] & 0xfc) === 0xd8;

function openBase64(bytes) {
  const rest = bytes.length % 3;
  return [rest, rest === 0 ? 0 : 3];
}

const OPEN = { utf8: openUtf8, utf16le: openUtf16, base64: openBase64, base64url: openBase64 };

// A function, not a class: older libraries call it without `new`.
export function StringDecoder(encoding = undefined) {
  const name = `${encoding ?? 'utf8'}`.toLowerCase();
  if (!Buffer.isEncoding(name)) throw coded(new TypeError(`Unknown encoding: ${String(encoding)}`), 'ERR_UNKNOWN_ENCODING');
  this.encoding = CANONICAL[name] ?? name;
  this.lastChar = Buffer.alloc(0);
  this.lastNeed = 0;
  this.lastTotal = 0;
}

Object.assign(StringDecoder.prototype, {
  write(bytes) {
    if (typeof bytes === 'string') return bytes;
    if (!ArrayBuffer.isView(bytes)) throw wrongType('buf', ['string', 'Buffer', 'TypedArray', 'DataView'], bytes);
    const piece = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const whole = this.lastChar.length === 0 ? piece : Buffer.concat([this.lastChar, piece]);
    const [open, width] = OPEN[this.encoding]?.(whole) ?? [0, 0];
    this.lastNeed = width - open;
    this.lastTotal = width;
    this.lastChar = Buffer.from(whole.subarray(whole.length - open));
    return whole.toString(this.encoding, 0, whole.length - open);
  },
  end(bytes = undefined) {
    const text = bytes === undefined ? '' : this.write(bytes);
    // A pair that lacks its second half ends as half of one; a byte alone is nothing.
    const rest = this.lastChar.toString(this.encoding);
    this.lastChar = Buffer.alloc(0);
    this.lastNeed = 0;
    this.lastTotal = 0;
    return text + rest;
  },
  text(bytes, offset) {
    this.lastChar = Buffer.alloc(0);
    return this.write(bytes.subarray(offset));
  },
});

export default provide('node:string_decoder', { StringDecoder });
