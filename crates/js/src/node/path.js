// `node:path`: POSIX paths. There is no file system, so the working directory is that of Workers.
import { coded, provide } from 'node:internal/base';

const WORKING_DIRECTORY = '/bundle';

function shown(value) {
  if (value === null || value === undefined) return ` Received ${value}`;
  if (typeof value === 'function') return ` Received function ${value.name}`;
  if (typeof value === 'object') return ` Received an instance of ${value.constructor?.name ?? 'Object'}`;
  const text = typeof value === 'bigint' ? `${value}n` : String(value);
  return ` Received type ${typeof value} (${text})`;
}

function wrongType(name, expected, value) {
  return coded(new TypeError(`The "${name}" argument must be of type ${expected}.${shown(value)}`), 'ERR_INVALID_ARG_TYPE');
}

function requireText(value, name) {
  if (typeof value !== 'string') throw wrongType(name, 'string', value);
}

/** The segments of a path without `.` and what `..` takes away; `..` that lead above the start stay if the path is relative. */
function segmentsOf(path, isAbsolute) {
  const kept = [];
  for (const segment of path.split('/')) {
    if (segment === '' || segment === '.') continue;
    if (segment !== '..') kept.push(segment);
    else if (kept.length > 0 && kept.at(-1) !== '..') kept.pop();
    else if (!isAbsolute) kept.push('..');
  }
  return kept;
}

export const sep = '/';
export const delimiter = ':';

export function isAbsolute(path) {
  requireText(path, 'path');
  return path.startsWith('/');
}

export function normalize(path) {
  requireText(path, 'path');
  if (path === '') return '.';
  const absolute = path.startsWith('/');
  const joined = segmentsOf(path, absolute).join('/');
  const trail = path.endsWith('/') ? '/' : '';
  if (joined === '') return absolute ? '/' : `.${trail}`;
  return `${absolute ? '/' : ''}${joined}${trail}`;
}

export function join(...paths) {
  for (const path of paths) requireText(path, 'path');
  return normalize(paths.filter(path => path !== '').join('/'));
}

export function resolve(...paths) {
  let whole = '';
  let absolute = false;
  for (let at = paths.length - 1; at >= 0 && !absolute; at -= 1) {
    requireText(paths[at], `paths[${at}]`);
    if (paths[at] === '') continue;
    whole = `${paths[at]}/${whole}`;
    absolute = paths[at].startsWith('/');
  }
  if (!absolute) whole = `${WORKING_DIRECTORY}/${whole}`;
  return `/${segmentsOf(whole, true).join('/')}`;
}

export function relative(from, to) {
  requireText(from, 'from');
  requireText(to, 'to');
  const source = segmentsOf(resolve(from), true);
  const target = segmentsOf(resolve(to), true);
  let common = 0;
  while (common < source.length && common < target.length && source[common] === target[common]) common += 1;
  return [...source.slice(common).fill('..'), ...target.slice(common)].join('/');
}

export function toNamespacedPath(path) {
  return path;
}

/** Where the slashes at the end of a path begin. */
function endOf(path) {
  let end = path.length;
  while (end > 0 && path[end - 1] === '/') end -= 1;
  return end;
}

export function dirname(path) {
  requireText(path, 'path');
  if (path === '') return '.';
  const slash = path.lastIndexOf('/', endOf(path) - 1);
  if (endOf(path) === 0 || slash === 0) return path.startsWith('//') && slash === 1 ? '//' : '/';
  if (slash < 0) return '.';
  return slash === 1 && path.startsWith('/') ? '//' : path.slice(0, slash);
}

export function basename(path, suffix) {
  if (suffix !== undefined) requireText(suffix, 'suffix');
  requireText(path, 'path');
  const end = endOf(path);
  const start = end === 0 ? 0 : path.lastIndexOf('/', end - 1) + 1;
  const base = path.slice(start, end);
  if (!suffix || suffix.length > path.length) return base;
  if (suffix === path) return '';
  if (base !== suffix && base.endsWith(suffix)) return base.slice(0, -suffix.length);
  // As Node has it: a base that is the end of the suffix keeps the slashes behind it.
  return base !== suffix && suffix.endsWith(base) ? path.slice(start) : base;
}

/** The extension of a segment, with its dot. */
function extensionOf(base) {
  const dot = base.lastIndexOf('.');
  return dot <= 0 || base === '..' ? '' : base.slice(dot);
}

export function extname(path) {
  requireText(path, 'path');
  return extensionOf(basename(path));
}

export function parse(path) {
  requireText(path, 'path');
  const root = path.startsWith('/') ? '/' : '';
  const end = endOf(path);
  const slash = end === 0 ? -1 : path.lastIndexOf('/', end - 1);
  const base = end === 0 ? '' : path.slice(slash + 1, end);
  // As Node has it: `..` in the root is a name with an extension.
  const ext = slash === 0 && base === '..' ? '.' : extensionOf(base);
  const dir = slash > 0 ? path.slice(0, slash) : root;
  return { root, dir, base, ext, name: base.slice(0, base.length - ext.length) };
}

export function format(parts) {
  if (parts === null || typeof parts !== 'object') throw wrongType('pathObject', 'object', parts);
  const dir = parts.dir || parts.root;
  const ext = parts.ext ? `${parts.ext[0] === '.' ? '' : '.'}${parts.ext}` : '';
  const base = parts.base || `${parts.name || ''}${ext}`;
  if (!dir) return base;
  return dir === parts.root ? `${dir}${base}` : `${dir}/${base}`;
}

export const posix = {
  sep, delimiter, resolve, normalize, isAbsolute, join, relative, toNamespacedPath, dirname, basename, extname, format, parse,
};
posix.posix = posix;
export default provide('node:path', posix);
