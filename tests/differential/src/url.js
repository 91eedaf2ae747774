import { thrown, errorName } from './show.js';

const parts = url => Object.fromEntries(
  ['href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash']
    .map(name => [name, url[name]]));

export const components = () => parts(new URL('https://user:pa%20ss@sub.Example.com:8080/a/b?x=1&y=2#part'));
export const relative = () => ['../x', '//other/y', '?q', '#h', 'z', ''].map(it => new URL(it, 'https://a.example/b/c/d?e#f').href);
export const dots = () => new URL('http://a/b/./c/../../d/%2e%2e/e/.').href;
export const idna = () => ['http://bücher.example/', 'http://ＡＢＣ.example/', 'http://xn--bcher-kva.example/'].map(it => new URL(it).host);
export const addresses = () => ['http://0x7f.1/', 'http://[::1]:80/', 'http://2130706433/', 'http://[1:2::3:4]/'].map(it => new URL(it).host);
export const default_ports = () => ['http://a:80/', 'https://a:443/', 'https://a:80/', 'ws://a:80/'].map(it => new URL(it).href);
export const escapes = () => new URL('http://a/ü ä"<>`{}?ü "<>\'#ü "<>`').href;
export const special = () => ['data:text/plain,hi', 'mailto:a@b', 'file:///c:/d', 'blob:https://a/b'].map(it => parts(new URL(it)));
export const invalid = () => thrown(() => new URL('not a url'));
export const invalid_base = () => thrown(() => new URL('a', 'b'));
export const invalid_port = () => errorName(() => new URL('http://a:99999/'));
export const can_parse = () => [URL.canParse('http://a'), URL.canParse('x'), URL.canParse('x', 'http://a'), URL.parse('x'), URL.parse('y', 'http://a/').href];
export const setters = () => {
  const url = new URL('http://a.example/b?c#d');
  url.protocol = 'https'; url.host = 'x.example:99'; url.pathname = '/é /'; url.search = 'q=ä'; url.hash = 'h h';
  url.username = 'u:'; url.password = 'p@';
  const first = url.href;
  url.port = ''; url.search = ''; url.hash = '';
  return [first, url.href];
};
export const setters_ignore = () => {
  const url = new URL('http://a.example:81/');
  url.protocol = 'data'; url.host = ''; url.port = 'x1'; url.hostname = 'a b';
  return url.href;
};
export const search_params = () => {
  const params = new URLSearchParams('a=1&b=2&a=3&c=%20+x&d&=e');
  return [params.get('a'), params.getAll('a'), params.get('c'), params.get('d'), params.get(''), params.has('z'), params.has('a', '3'), params.size, `${params}`];
};
export const search_params_change = () => {
  const params = new URLSearchParams({ z: '1', a: 'ü &=' });
  params.append('a', '~!*()\''); params.set('z', '2'); params.sort(); params.delete('a', 'x');
  return [`${params}`, [...params.keys()], [...params.values()]];
};
export const search_params_sources = () => [`${new URLSearchParams([['a', 'b'], ['a', 'c']])}`, `${new URLSearchParams(new Map([['k', 'v']]))}`, `${new URLSearchParams('?x=y')}`];
export const search_params_bad = () => errorName(() => new URLSearchParams([['a']]));
export const search_params_live = () => {
  const url = new URL('http://a/?x=1');
  url.searchParams.append('y', 'a b');
  const first = url.search;
  url.search = '?z';
  return [first, `${url.searchParams}`];
};
export const pattern = () => {
  const pattern = new URLPattern({ pathname: '/users/:id(\\d+)/*' });
  const found = pattern.exec('https://a.example/users/42/x/y');
  return [pattern.test('https://a/users/x/'), found.pathname.groups, found.hostname.input];
};
export const pattern_string = () => new URLPattern('https://:sub.example.com/:path').exec('https://www.example.com/a')?.pathname.groups;
