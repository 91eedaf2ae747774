//! Encoding Standard and the forgiving base64 of the Infra Standard.

use super::holds;
use crate::testing::{fails, run};

#[test]
fn text_is_encoded_as_utf8() {
    assert_eq!(
        run("return [...new TextEncoder().encode('aé€😀')].join()"),
        "97,195,169,226,130,172,240,159,152,128"
    );
    holds(&[
        "new TextEncoder().encode().length === 0 && new TextEncoder().encode(undefined).length === 0",
        "[...new TextEncoder().encode('\\ud800x')].join() === '239,191,189,120'",
        "new TextEncoder().encode('a\\0b').length === 3",
        "new TextEncoder().encoding === 'utf-8'",
        "const b = new Uint8Array(4), r = new TextEncoder().encodeInto('a€€', b); return r.read === 2 && r.written === 4 && b[3] === 0xac",
        "const b = new Uint8Array(3), r = new TextEncoder().encodeInto('😀', b); return r.read === 0 && r.written === 0 && b[0] === 0",
        "const b = new Uint8Array(8), r = new TextEncoder().encodeInto('😀x', b.subarray(1)); return r.read === 3 && r.written === 5 && b[0] === 0 && b[5] === 120",
    ]);
    assert!(fails("new TextEncoder().encodeInto('x', [])").starts_with("TypeError"));
    assert_eq!(fails("TextEncoder.prototype.encode.call({})"), "TypeError: Illegal invocation");
}

#[test]
fn bytes_are_decoded_whole_or_in_pieces() {
    holds(&[
        "new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 97])) === 'a'",
        "new TextDecoder('utf-8', { ignoreBOM: true }).decode(new Uint8Array([0xef, 0xbb, 0xbf, 97])) === '\\ufeffa'",
        "new TextDecoder().decode(new Uint8Array([97, 0xff, 98])) === 'a\\ufffdb'",
        "new TextDecoder().decode() === ''",
        "const d = new TextDecoder(); return d.decode(new Uint8Array([0xe2, 0x82]), { stream: true }) === '' && d.decode(new Uint8Array([0xac]), { stream: true }) === '€' && d.decode() === ''",
        "const d = new TextDecoder(); d.decode(new Uint8Array([0xe2]), { stream: true }); return d.decode() === '\\ufffd' && d.decode(new Uint8Array([97])) === 'a'",
        "const d = new TextDecoder(); return d.decode(new Uint8Array([0xef, 0xbb]), { stream: true }) + d.decode(new Uint8Array([0xbf, 98])) === 'b'",
        "new TextDecoder().decode(new Uint8Array([1, 97, 98, 2]).subarray(1, 3)) === 'ab'",
        "new TextDecoder().decode(new Uint8Array([97]).buffer) === 'a' && new TextDecoder().decode(new DataView(new Uint8Array([98]).buffer)) === 'b'",
        "new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([97])) === 'a'",
    ]);
    assert_eq!(
        fails("new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([0xff]))"),
        "TypeError: The encoded data was not valid."
    );
    assert!(
        fails("new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([0xe2]))")
            .starts_with("TypeError")
    );
    assert!(fails("new TextDecoder().decode('x')").starts_with("TypeError"));
}

#[test]
fn labels_name_their_encodings() {
    for (label, name, bytes, text) in [
        ("UTF8", "utf-8", "195,169", "é"),
        (" latin1 ", "windows-1252", "233", "é"),
        ("ascii", "windows-1252", "128", "€"),
        ("utf-16", "utf-16le", "172,32", "€"),
        ("utf-16be", "utf-16be", "32,172", "€"),
        ("sjis", "shift_jis", "130,160", "あ"),
        ("euc-kr", "euc-kr", "176,161", "가"),
        ("gbk", "gbk", "196,227", "你"),
        ("gb18030", "gb18030", "196,227", "你"),
        ("big5", "big5", "167,65", "你"),
        ("koi8-r", "koi8-r", "193", "а"),
        ("iso-8859-2", "iso-8859-2", "177", "ą"),
        ("windows-1251", "windows-1251", "224", "а"),
        ("x-user-defined", "x-user-defined", "128", "\u{f780}"),
        ("iso-2022-jp", "iso-2022-jp", "27,36,66,36,34", "あ"),
    ] {
        let body = format!(
            "const d = new TextDecoder('{label}'); return [d.encoding, d.decode(new Uint8Array([{bytes}]))].join(' ')"
        );
        assert_eq!(run(&body), format!("{name} {text}"));
    }
    assert_eq!(fails("new TextDecoder('nope')"), "RangeError: \"nope\" is not a valid encoding.");
    assert!(fails("new TextDecoder('iso-2022-kr')").starts_with("RangeError"));
}

#[test]
fn base64_is_forgiving_where_the_standard_is() {
    holds(&[
        "btoa('hello') === 'aGVsbG8=' && btoa('') === '' && btoa('\\xff') === '/w=='",
        "atob('aGVsbG8=') === 'hello' && atob('aGVsbG8') === 'hello' && atob(' aGV\\nsbG8= ') === 'hello' && atob('') === ''",
        "atob('/w==') === '\\xff' && btoa(null) === 'bnVsbA=='",
        "let s = ''; for (let i = 0; i < 3000; i++) s += 'ab'; return atob(btoa(s)) === s",
    ]);
    for bad in ["atob('a')", "atob('aGVsbG8==')", "atob('a-b_')", "atob('=')", "atob('ab=c')", "btoa('€')"]
    {
        assert!(fails(bad).starts_with("InvalidCharacterError"), "{bad}");
    }
    assert!(fails("btoa()").starts_with("TypeError"));
}
