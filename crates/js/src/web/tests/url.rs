//! URL Standard.

use super::holds;
use crate::testing::{fails, run};

#[test]
fn a_url_shows_its_components() {
    assert_eq!(
        run(
            "const u = new URL('https://us%20er:pa%3Ass@EXAMPLE.com:8080/a/../b c?q=1#h'); return [u.href, u.origin, u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash].join(' ')"
        ),
        "https://us%20er:pa%3Ass@example.com:8080/b%20c?q=1#h https://example.com:8080 https: us%20er pa%3Ass example.com:8080 example.com 8080 /b%20c ?q=1 #h"
    );
    holds(&[
        "const u = new URL('mailto:a@b'); return u.origin === 'null' && u.host === '' && u.username === '' && u.password === '' && u.pathname === 'a@b'",
        "const u = new URL('http://a:80/?#'); return u.port === '' && u.search === '' && u.hash === '' && u.href === 'http://a/?#'",
        "new URL('../x?y', 'http://a/b/c/d').href === 'http://a/b/x?y'",
        "new URL('//b', 'https://a').href === 'https://b/'",
        "new URL('http://münchen.de/ä').href === 'http://xn--mnchen-3ya.de/%C3%A4'",
        "new URL('http://[::1]:3000').hostname === '[::1]' && new URL('http://0x7f.1').hostname === '127.0.0.1'",
        "new URL('blob:https://a/x').origin === 'https://a' && new URL('file:///x').origin === 'null' && new URL('ws://a').origin === 'ws://a'",
        "new URL('http://u@h').username === 'u' && new URL('http://:p@h').password === 'p' && new URL('http://h').password === ''",
        "JSON.stringify({ u: new URL('http://a') }) === '{\"u\":\"http://a/\"}' && `${new URL('http://a')}` === 'http://a/'",
        "URL.canParse('http://a') && !URL.canParse('x') && URL.canParse('x', 'http://a') && URL.parse('x') === null && URL.parse('x', 'http://a').href === 'http://a/x'",
        "const u = URL.parse('http://a'); return u instanceof URL && new URL('http://b').href === 'http://b/'",
        "new URL('http://a/\\ud800').href === 'http://a/%EF%BF%BD'",
        "Object.prototype.toString.call(new URL('http://a')) === '[object URL]'",
        "class Mine extends URL { get twice() { return this.href + this.href; } } return new Mine('http://a').twice === 'http://a/http://a/'",
    ]);
    assert_eq!(fails("new URL('nope')"), "TypeError: Invalid URL string.");
    assert!(fails("new URL()").starts_with("TypeError"));
    assert_eq!(fails("URL.prototype.href"), "TypeError: Illegal invocation");
    assert!(fails("new URL('http://a').href = 'x'").starts_with("TypeError"));
}

#[test]
fn setters_change_what_the_standard_lets_them() {
    for (from, setting, to) in [
        ("http://a/b", "protocol = 'https'", "https://a/b"),
        ("http://a/b", "protocol = 'mailto'", "http://a/b"),
        ("http://a/b", "host = 'c:81'", "http://c:81/b"),
        ("http://a:80/b", "hostname = 'c'", "http://c/b"),
        ("http://a/b", "hostname = 'c:9'", "http://a/b"),
        ("http://a/b", "port = '8080'", "http://a:8080/b"),
        ("http://a:8080/b", "port = ''", "http://a/b"),
        ("http://a/b", "port = '99999'", "http://a/b"),
        ("http://a/b", "pathname = 'x y'", "http://a/x%20y"),
        ("http://a/b", "search = 'q=ä'", "http://a/b?q=%C3%A4"),
        ("http://a/b?x", "search = ''", "http://a/b"),
        ("http://a/b", "hash = 'h'", "http://a/b#h"),
        ("http://a/b#x", "hash = ''", "http://a/b"),
        ("http://a/b", "username = 'u:'", "http://u%3A@a/b"),
        ("http://u@a/b", "password = 'p@'", "http://u:p%40@a/b"),
        ("mailto:x", "username = 'u'", "mailto:x"),
        ("http://a/b", "href = 'x:y'", "x:y"),
    ] {
        assert_eq!(
            run(&format!("const u = new URL('{from}'); u.{setting}; return u.href")),
            to,
            "{from} {setting}"
        );
    }
}

#[test]
fn search_params_and_their_url_change_together() {
    holds(&[
        "const u = new URL('http://a/?x=1'); u.searchParams.append('y', 'b c&'); return u.href === 'http://a/?x=1&y=b+c%26'",
        "const u = new URL('http://a/?x=1'), p = u.searchParams; u.search = '?z=2'; return p === u.searchParams && p.get('z') === '2' && !p.has('x')",
        "const u = new URL('http://a/?x=1'), p = u.searchParams; u.href = 'http://b/?w=3'; return p.get('w') === '3'",
        "const u = new URL('http://a/?x=1#h'); u.searchParams.delete('x'); return u.href === 'http://a/#h'",
        "const u = new URL('http://a/?b=1&a=2'); u.searchParams.sort(); return u.search === '?a=2&b=1'",
        "const u = new URL('http://a/?a=%20b'); u.searchParams.set('c', '1'); return u.search === '?a=+b&c=1'",
    ]);
}

#[test]
fn search_params_are_a_list_of_pairs() {
    holds(&[
        "new URLSearchParams('?a=1&b=2&a=3').getAll('a').join() === '1,3'",
        "new URLSearchParams({ a: 1, b: 'x y' }).toString() === 'a=1&b=x+y'",
        "new URLSearchParams([['a', 'b'], ['c', 'd']]).toString() === 'a=b&c=d'",
        "new URLSearchParams(new Map([['k', 'v']])).get('k') === 'v'",
        "new URLSearchParams(new URLSearchParams('a=b')).toString() === 'a=b'",
        "const p = new URLSearchParams('a=1&a=2&b=3'); p.set('a', '9'); return p.toString() === 'a=9&b=3'",
        "const p = new URLSearchParams('a=1&a=2'); p.delete('a', '1'); return p.toString() === 'a=2' && p.has('a', '2') && !p.has('a', '1')",
        "const p = new URLSearchParams('a=1&b=2'); return p.size === 2 && [...p].join(';') === 'a,1;b,2' && [...p.keys()].join() === 'a,b' && [...p.values()].join() === '1,2'",
        "new URLSearchParams('a=%zz&=b&c').toString() === 'a=%25zz&=b&c='",
        "new URLSearchParams('a=\\u{1f600}').toString() === 'a=%F0%9F%98%80'",
        "new URLSearchParams('').size === 0 && new URLSearchParams('a=').get('a') === '' && new URLSearchParams('').get('a') === null",
        "const seen = []; new URLSearchParams('a=1').forEach(function (v, k, p) { seen.push(v, k, p instanceof URLSearchParams, this.x); }, { x: 5 }); return seen.join() === '1,a,true,5'",
        "const p = new URLSearchParams('a=1&b=2&c=3'), seen = []; for (const [k] of p) { seen.push(k); p.delete('b'); } return seen.join() === 'a,c'",
        "Object.prototype.toString.call(new URLSearchParams().entries()) === '[object URLSearchParams Iterator]' && URLSearchParams.prototype[Symbol.iterator] === URLSearchParams.prototype.entries",
    ]);
    assert!(fails("new URLSearchParams([['a']])").starts_with("TypeError"));
    assert!(fails("new URLSearchParams().append('a')").starts_with("TypeError"));
}

#[test]
fn a_pattern_matches_urls_and_names_their_groups() {
    holds(&[
        "const p = new URLPattern({ pathname: '/users/:id' }); const m = p.exec('https://a/users/5'); return p.test('https://a/users/5') && !p.test('https://a/posts/5') && m.pathname.groups.id === '5' && m.pathname.input === '/users/5' && m.inputs[0] === 'https://a/users/5'",
        "new URLPattern('https://*.example.com/*').test('https://x.example.com/y') && !new URLPattern('https://*.example.com/*').test('https://example.org/y')",
        "new URLPattern('/a/:b(\\\\d+)', 'http://x').exec('http://x/a/12').pathname.groups.b === '12' && !new URLPattern('/a/:b(\\\\d+)', 'http://x').test('http://x/a/b')",
        "const p = new URLPattern({ pathname: '/a/*{/}?' }); return p.pathname === '/a/*{/}?' && p.hostname === '*' && p.hasRegExpGroups === false",
        "new URLPattern({ pathname: '/A' }, { ignoreCase: true }).test('http://x/a') && !new URLPattern({ pathname: '/A' }).test('http://x/a')",
        "new URLPattern({ search: 'q=:q' }).exec({ search: 'q=1', baseURL: 'http://a' }).search.groups.q === '1'",
        "new URLPattern().test('http://a/b') && new URLPattern({ pathname: '/x' }).test('/x', 'http://a') && new URLPattern().exec('nope') === null",
    ]);
    assert!(fails("new URLPattern('/x')").starts_with("TypeError: Failed to parse a URLPattern"));
    assert!(fails("new URLPattern({ pathname: '/:' })").starts_with("TypeError"));
}
