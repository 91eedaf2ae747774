// `node:url`, the old parser with it.
import url, { URL as NodeURL, URLSearchParams as NodeParams, domainToASCII, domainToUnicode, fileURLToPath, format, parse, pathToFileURL, resolve, urlToHttpOptions } from 'node:url';
import { thrown } from './show.js';

const fails = async body => { const error = await thrown(body); return typeof error === 'string' ? error : `${error.name} ${error.code}: ${error.message}`; };
const all = async (...bodies) => { const results = []; for (const body of bodies) results.push(await fails(body)); return results; };
const shown = parsed => ({ ...parsed });

export const same = () => [NodeURL === URL, NodeParams === URLSearchParams, url.URL === URL, url.parse === parse];
export const parse_whole = () => shown(parse('http://user:pa%20ss@Sub.Example.com:8080/p/a/t/h?query=string&a=b#hash'));
export const parse_parts = () => ['/path?x=1#y', 'mailto:a@b.c', 'HTTP://EXAMPLE.com', '//host/path', 'file:///etc/x', 'javascript:alert(1)', 'x:y', '?q', '#h', '', 'http://a.com?b', 'http://a b/c d', 'http://[::1]:80/x', 'http://host:/x', 'a/b', 'http://user@/x', 'http://ex\\ample/p'].map(each => { try { return shown(parse(each)); } catch (error) { return `${error.name} ${error.code}`; } });
export const parse_query = () => [shown(parse('/a?b=1&b=2&c', true).query), parse('/a', true).search, shown(parse('/a', true).query), parse('//h/p', false, true).host, parse('//h/p').pathname];
export const parse_bad = () => all(() => parse(5), () => parse('http://a:99999999/'), () => parse('http://\ud800/'), () => parse());
export const formats = () => [format({ protocol: 'http', host: 'a.com', pathname: 'x', query: { a: 1, b: [2, 3] } }), format({ hostname: 'h', port: 1, pathname: '/p?q#h', hash: 'z' }), format({ protocol: 'mailto:', pathname: 'a@b' }), format({ protocol: 'file', pathname: '/x' }), format('http://a/b'), format({ auth: 'u:p', host: 'h', slashes: true }), format(new URL('http://u:p@a.com/x?y#z')), format(new URL('http://u:p@a.com/x?y#z'), { auth: false, fragment: false, search: false }), format(new URL('http://測試.com/'), { unicode: true }), format({ search: 'x', pathname: 'a' })];
export const format_bad = () => all(() => format(5), () => format(new URL('http://a/'), 5), () => format());
export const resolves = () => [['/one/two/three', 'four'], ['http://example.com/', '/one'], ['http://example.com/one', '/two'], ['http://a/b/c/d;p?q', '../g'], ['http://a/b/c/d;p?q', '?y'], ['http://a/b/c/d;p?q', '#s'], ['http://a/b/c/d;p?q', '//g'], ['http://a/b/c/d;p?q', 'g:h'], ['http://a/b/c/d;p?q', './../../../g'], ['http://a/b', ''], ['a/b', '../c'], ['mailto:a@b', 'c'], ['http://a', 'b/../c/.'], ['/a/b/', '..']].map(([from, to]) => resolve(from, to));
export const file_urls = () => [fileURLToPath('file:///a%20b/c'), fileURLToPath(new URL('file:///x')), pathToFileURL('/a b#?%/\u00fc').href, pathToFileURL('/a/../b/').href, pathToFileURL('rel').href.startsWith('file:///')];
export const file_urls_bad = () => all(() => fileURLToPath('http://a/'), () => fileURLToPath('file://host/x'), () => fileURLToPath('file:///a%2fb'), () => fileURLToPath(5), () => pathToFileURL(5));
export const domains = () => [domainToASCII('español.com'), domainToASCII('xn--iñvalid.com'), domainToUnicode('xn--espaol-zwa.com'), domainToASCII('a b'), domainToUnicode('中文.com'), domainToASCII('EXAMPLE.com')];
export const http_options = () => { const options = urlToHttpOptions(new URL('https://a:b@xn--g6w251d/?abc#foo')); return { ...options }; };
