// `node:url`: what the platform has, paths of `file:` URLs, and the parser that Node had before URLs were standard.
import { coded, provide, received, requireText, wrongType } from 'node:internal/base';
import { parse as parseQuery, stringify } from 'node:querystring';

export const { URL, URLSearchParams } = globalThis;

const failure = (Class, message, code) => coded(new Class(message), code);

// ---- Paths.

export function fileURLToPath(path) {
  const url = typeof path === 'string' ? new URL(path) : path;
  if (!(url instanceof URL)) throw wrongType('path', ['string', 'URL'], path);
  if (url.protocol !== 'file:') throw failure(Error, 'The URL must be of scheme file', 'ERR_INVALID_URL_SCHEME');
  if (url.hostname !== '') throw failure(Error, 'File URL host must be "localhost" or empty on linux', 'ERR_INVALID_FILE_URL_HOST');
  if (/%2f/i.test(url.pathname)) throw failure(Error, 'File URL path must not include encoded / characters', 'ERR_INVALID_FILE_URL_PATH');
  return decodeURIComponent(url.pathname);
}

export function pathToFileURL(filepath) {
  requireText(filepath, 'filepath');
  const url = new URL('file:///');
  const absolute = filepath.startsWith('/') ? filepath : `/bundle/${filepath}`;
  url.pathname = absolute.replace(/[%\\\n\r\t?#]/g, char => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
  return url;
}

export function toPathIfFileURL(value) {
  return value instanceof URL ? fileURLToPath(value) : value;
}

// ---- Domains.

export function domainToASCII(domain) {
  if (arguments.length === 0) throw coded(new TypeError('The "domain" argument must be specified'), 'ERR_MISSING_ARGS');
  const url = URL.parse(`ws://${domain}`);
  return url === null || /[/?#@]/.test(`${domain}`) ? '' : url.hostname;
}

const PUNY = { base: 36, low: 1, high: 26, skew: 38, damp: 700 };

/** Text of a Punycode label (RFC 3492), without its `xn--`. */
function decodeLabel(label) {
  const split = label.lastIndexOf('-');
  const output = split > 0 ? [...label.slice(0, split)].map(char => char.charCodeAt(0)) : [];
  let [code, bias, index] = [128, 72, 0];
  for (let at = split > 0 ? split + 1 : 0; at < label.length;) {
    const before = index;
    for (let [weight, step] = [1, PUNY.base]; ; step += PUNY.base) {
      const digit = parseInt(label[at++], 36);
      const value = Number.isNaN(digit) ? NaN : digit >= 10 ? digit - 10 : digit + 26;
      if (Number.isNaN(value)) return null;
      index += value * weight;
      const limit = step <= bias ? PUNY.low : step >= bias + PUNY.high ? PUNY.high : step - bias;
      if (value < limit) break;
      weight *= PUNY.base - limit;
    }
    const length = output.length + 1;
    let delta = before === 0 ? Math.floor((index - before) / PUNY.damp) : (index - before) >> 1;
    delta += Math.floor(delta / length);
    let times = 0;
    for (; delta > (PUNY.base - PUNY.low) * PUNY.high >> 1; times += PUNY.base) delta = Math.floor(delta / (PUNY.base - PUNY.low));
    bias = Math.floor(times + (PUNY.base - PUNY.low + 1) * delta / (delta + PUNY.skew));
    code += Math.floor(index / length);
    index %= length;
    output.splice(index++, 0, code);
  }
  return String.fromCodePoint(...output);
}

const unicodeOf = host => host.split('.').map(label => label.startsWith('xn--') ? decodeLabel(label.slice(4)) ?? label : label).join('.');

export function domainToUnicode(domain) {
  if (arguments.length === 0) throw coded(new TypeError('The "domain" argument must be specified'), 'ERR_MISSING_ARGS');
  return unicodeOf(domainToASCII(domain));
}

export function urlToHttpOptions(url) {
  const { hostname, port, pathname, search } = url;
  const options = {
    __proto__: null, ...url, protocol: url.protocol, hostname: hostname.startsWith('[') ? hostname.slice(1, -1) : hostname, hash: url.hash,
    search, pathname, path: `${pathname || ''}${search || ''}`, href: url.href,
  };
  if (port !== '') options.port = Number(port);
  if (url.username || url.password) options.auth = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  return options;
}

// ---- The old parser.

const SCHEMES_WITH_SLASHES = ['http', 'https', 'ftp', 'gopher', 'file', 'ws', 'wss'];
const SCHEMES_WITHOUT_HOST = ['javascript'];
const withoutColon = protocol => protocol?.replace(/:$/, '');
const hasSlashes = protocol => SCHEMES_WITH_SLASHES.includes(withoutColon(protocol));
const ESCAPED = /[\t\n\r "'<>\\^`{|}]/g;

export function Url() {
  for (const key of ['protocol', 'slashes', 'auth', 'host', 'port', 'hostname', 'hash', 'search', 'query', 'pathname', 'path', 'href']) this[key] = null;
}

const invalid = input => Object.assign(failure(Error, 'Invalid URL', 'ERR_INVALID_URL'), { input });

/** Takes the authority from the front of `rest`, and answers what is left. */
function takeAuthority(url, rest, whole) {
  // Credentials may hold anything but what ends an authority.
  const end = rest.search(/[/?#]/);
  const before = end < 0 ? rest : rest.slice(0, end);
  const at = before.lastIndexOf('@');
  if (at >= 0) url.auth = decodeURIComponent(before.slice(0, at));
  const host = rest.slice(at + 1);
  const stop = host.search(/[\t\n\r "#%/;<>?\\^`{|}]/);
  let authority = stop < 0 ? host : host.slice(0, stop);
  const port = /:([0-9]*)$/.exec(authority);
  if (port !== null) {
    if (port[1] !== '') url.port = port[1];
    authority = authority.slice(0, -port[0].length);
  }
  let hostname = authority.length > 255 ? '' : authority.toLowerCase();
  const isLiteral = hostname.startsWith('[') && hostname.endsWith(']');
  let left = stop < 0 ? '' : host.slice(stop);
  if (isLiteral) {
    hostname = hostname.slice(1, -1);
  } else if (hostname !== '') {
    if (/[:@]/.test(hostname)) throw invalid(whole);
    const ascii = /[^\0-\x7f]/.test(hostname) ? domainToASCII(hostname) : hostname;
    if (ascii === '') throw invalid(whole);
    hostname = ascii;
  }
  url.hostname = hostname;
  url.host = (isLiteral ? `[${hostname}]` : hostname) + (url.port === null ? '' : `:${url.port}`);
  if (left !== '' && !/^[/?#]/.test(left)) left = url.protocol !== null && hasSlashes(url.protocol) && left.startsWith('/') ? `/${left}` : left;
  return left;
}

Url.prototype.parse = function parse(input, parsesQuery = false, slashesDenoteHost = false) {
  requireText(input, 'url');
  // Backslashes in front of a query are slashes, as browsers have it.
  const queryAt = input.search(/[?#]/);
  const front = queryAt < 0 ? input : input.slice(0, queryAt);
  let rest = (front.replaceAll('\\', '/') + (queryAt < 0 ? '' : input.slice(queryAt))).trim();
  const scheme = /^[a-z0-9.+-]+:/i.exec(rest)?.[0];
  if (scheme !== undefined) {
    this.protocol = scheme.toLowerCase();
    rest = rest.slice(scheme.length);
  }
  const isScript = SCHEMES_WITHOUT_HOST.includes(withoutColon(this.protocol));
  let slashes = false;
  if (slashesDenoteHost || scheme !== undefined || /^\/\/[^@/]+@[^@/]+/.test(rest)) {
    slashes = rest.startsWith('//') && !isScript;
    if (slashes) {
      rest = rest.slice(2);
      this.slashes = true;
    }
  }
  if (!isScript && (slashes || (this.protocol !== null && !hasSlashes(this.protocol)))) rest = takeAuthority(this, rest, input);
  if (!isScript) rest = rest.replace(ESCAPED, char => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
  const hash = rest.indexOf('#');
  if (hash >= 0) {
    this.hash = rest.slice(hash);
    rest = rest.slice(0, hash);
  }
  const query = rest.indexOf('?');
  if (query >= 0) {
    this.search = rest.slice(query);
    this.query = this.search.slice(1);
    if (parsesQuery) this.query = parseQuery(this.query);
    rest = rest.slice(0, query);
  } else if (parsesQuery) {
    this.search = null;
    this.query = Object.create(null);
  }
  if (rest !== '') this.pathname = rest;
  if (hasSlashes(this.protocol) && this.hostname && this.pathname === null) this.pathname = '/';
  if (this.pathname !== null || this.search !== null) this.path = (this.pathname ?? '') + (this.search ?? '');
  this.href = this.format();
  return this;
};

Url.prototype.format = function format() {
  const auth = this.auth ? `${encodeURIComponent(this.auth).replace(/%3A/i, ':').replace(/%21|%27|%28|%29|%2A/g, decodeURIComponent)}@` : '';
  let protocol = this.protocol || '';
  if (protocol !== '' && !protocol.endsWith(':')) protocol += ':';
  let host = '';
  if (this.host) host = auth + this.host;
  else if (this.hostname) {
    const isLiteral = this.hostname.includes(':') && !this.hostname.startsWith('[');
    host = auth + (isLiteral ? `[${this.hostname}]` : this.hostname) + (this.port ? `:${this.port}` : '');
  }
  const query = this.query !== null && typeof this.query === 'object' ? stringify(this.query) : '';
  let search = this.search || (query && `?${query}`) || '';
  let pathname = (this.pathname || '').replace(/[#?]/g, encodeURIComponent);
  if (this.slashes || hasSlashes(protocol) || (protocol === '' && this.slashes)) {
    if (this.slashes || host !== '') {
      if (pathname !== '' && !pathname.startsWith('/')) pathname = `/${pathname}`;
      host = `//${host}`;
    } else if (protocol.startsWith('file')) {
      host = '//';
    }
  }
  let hash = this.hash || '';
  if (hash !== '' && !hash.startsWith('#')) hash = `#${hash}`;
  if (search !== '' && !search.startsWith('?')) search = `?${search}`;
  return protocol + host + pathname + search.replaceAll('#', '%23') + hash;
};

/** The segments of a path without `.` and what `..` takes away. */
function settled(segments, keepsUp) {
  const kept = [];
  let up = 0;
  for (const segment of segments) {
    if (segment === '..') {
      if (kept.length > 0) kept.pop();
      else up += 1;
    } else if (segment !== '.') {
      kept.push(segment);
    }
  }
  return keepsUp ? [...Array(up).fill('..'), ...kept] : kept;
}

Url.prototype.resolveObject = function resolveObject(other) {
  const relative = typeof other === 'string' ? parse(other, false, true) : other;
  const result = Object.assign(new Url(), this);
  result.hash = relative.hash;
  if (relative.href === '') {
    result.href = result.format();
    return result;
  }
  const adopt = (...keys) => {
    for (const key of keys) result[key] = relative[key];
  };
  if (relative.protocol !== null && relative.protocol !== result.protocol) {
    Object.assign(result, relative);
    result.href = result.format();
    return result;
  }
  if (relative.slashes && relative.protocol === null || (relative.protocol !== null && relative.host)) {
    adopt('host', 'hostname', 'port', 'auth', 'pathname', 'search', 'query');
    result.slashes = relative.slashes ?? result.slashes;
    if (hasSlashes(result.protocol) && !result.pathname) result.pathname = '/';
  } else {
    const isAbsolute = relative.pathname?.startsWith('/');
    // Of a scheme without slashes the host is the first segment of the path.
    const isOpaque = result.host && !result.slashes && !hasSlashes(result.protocol);
    const base = isOpaque ? [result.host, ...(result.pathname ?? '').split('/').slice(1)] : (result.pathname ?? '').split('/');
    if (relative.pathname) {
      adopt('search', 'query');
      const mustBeAbsolute = isAbsolute || result.pathname?.startsWith('/') || Boolean(result.host && relative.pathname && hasSlashes(result.protocol));
      const joined = isAbsolute ? relative.pathname.split('/') : [...base.slice(0, -1), ...relative.pathname.split('/')];
      const last = joined.at(-1);
      let segments = settled(joined.filter((segment, at) => at > 0 || segment !== ''), !mustBeAbsolute);
      if (last === '.' || last === '..') segments = [...segments, ''];
      if (isOpaque && !isAbsolute) result.host = result.hostname = segments.shift() ?? '';
      result.pathname = (mustBeAbsolute || (isOpaque && segments.length > 0) ? '/' : '') + segments.join('/');
      if (result.pathname === '') result.pathname = null;
    } else if (relative.search !== null) {
      adopt('search', 'query');
    }
  }
  result.path = result.pathname !== null || result.search !== null ? (result.pathname ?? '') + (result.search ?? '') : null;
  result.href = result.format();
  return result;
};

Url.prototype.resolve = function resolve(other) {
  return this.resolveObject(parse(other, false, true)).format();
};

export function parse(url, parsesQuery = false, slashesDenoteHost = false) {
  if (url instanceof Url) return url;
  return new Url().parse(url, parsesQuery, slashesDenoteHost);
}

function formatStandard(url, options = {}) {
  if (options === null || typeof options !== 'object') throw wrongType('options', 'object', options);
  const { auth = true, fragment = true, search = true, unicode = false } = options;
  const credentials = auth && (url.username || url.password) ? `${url.username}${url.password ? `:${url.password}` : ''}@` : '';
  const host = unicode ? unicodeOf(url.hostname) + (url.port ? `:${url.port}` : '') : url.host;
  const front = url.href.startsWith(`${url.protocol}//`) ? `//${credentials}${host}` : '';
  return url.protocol + front + url.pathname + (search ? url.search : '') + (fragment ? url.hash : '');
}

export function format(urlObject, options = undefined) {
  if (typeof urlObject === 'string') return parse(urlObject).format();
  if (urlObject === null || typeof urlObject !== 'object') {
    const message = `The "urlObject" argument must be one of type object or string.${received(urlObject)}`;
    throw coded(new TypeError(message), 'ERR_INVALID_ARG_TYPE');
  }
  if (urlObject instanceof URL) return formatStandard(urlObject, options);
  return Url.prototype.format.call(urlObject);
}

export const resolve = (from, to) => parse(from, false, true).resolve(to);
export const resolveObject = (from, to) => from ? parse(from, false, true).resolveObject(to) : to;

export default provide('node:url', {
  Url, parse, resolve, resolveObject, format, URL, URLSearchParams, domainToASCII, domainToUnicode, pathToFileURL, toPathIfFileURL,
  fileURLToPath, urlToHttpOptions,
});
