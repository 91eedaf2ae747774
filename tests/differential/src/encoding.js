import { thrown, errorName } from './show.js';

export const utf8 = () => new TextEncoder().encode('aü€😀\ud800b');
export const into = () => {
  const target = new Uint8Array(5);
  const result = new TextEncoder().encodeInto('aü€😀', target);
  return [result.read, result.written, target];
};
export const decode = () => new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 0x61, 0xc3, 0xbc, 0xff, 0x62]));
export const decode_bom = () => new TextDecoder('utf-8', { ignoreBOM: true }).decode(new Uint8Array([0xef, 0xbb, 0xbf, 0x61]));
export const decode_fatal = () => errorName(() => new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([0xff])));
export const decode_stream = () => {
  const decoder = new TextDecoder();
  return ['e2', '82', 'ac', '41'].map(byte => decoder.decode(new Uint8Array([parseInt(byte, 16)]), { stream: true })).concat(decoder.decode());
};
export const labels = () => ['utf8', 'UTF-8', 'latin1', 'ascii', 'utf-16', 'utf-16le', 'sjis', 'gbk', 'big5', 'koi8-r', 'windows-1251', 'euc-kr'].map(label => new TextDecoder(label).encoding);
export const latin1 = () => new TextDecoder('windows-1252').decode(new Uint8Array([0x80, 0x9f, 0xe9]));
export const shift_jis = () => new TextDecoder('shift_jis').decode(new Uint8Array([0x93, 0xfa, 0x96, 0x7b]));
export const utf16 = () => new TextDecoder('utf-16le').decode(new Uint8Array([0x61, 0, 0x3d, 0xd8, 0, 0xde]));
export const unknown_label = () => errorName(() => new TextDecoder('nothing'));
export const properties = () => { const d = new TextDecoder('utf8', { fatal: true }); return [d.encoding, d.fatal, d.ignoreBOM, new TextEncoder().encoding]; };
export const base64 = () => [btoa('a\u00ff'), atob('YQ=='), atob(' Y Q '), btoa('')];
export const base64_bad = () => Promise.all([errorName(() => atob('a')), errorName(() => btoa('€')), thrown(() => atob('*')).then(e => e instanceof DOMException)]);
export const decode_views = () => new TextDecoder().decode(new DataView(new Uint8Array([120, 97, 98, 121]).buffer, 1, 2));
export const uri = () => [encodeURIComponent('ü/&'), encodeURI('ü/&'), decodeURIComponent('%C3%BC'), escape('ü'), unescape('%FC')];
