//! The bytes that V8 11.3 (Node 20) writes for the same values.

use super::{checked, refused, serialized};

#[test]
fn values_have_the_bytes_of_v8() {
    let cases: &[(&str, &[u8])] = &[
        ("-0", b"N\0\0\0\0\0\0\0\x80"),
        ("1e10", b"N\0\0\0 _\xa0\x02B"),
        ("2**31 - 1", b"I\xfe\xff\xff\xff\x0f"),
        ("2**30", b"I\x80\x80\x80\x80\x08"),
        ("-1", b"I\x01"),
        ("-5n", b"Z\x11\x05\0\0\0\0\0\0\0"),
        ("0n", b"Z\0"),
        ("'\\xe9'", b"\"\x01\xe9"),
        ("'\\u20ac'", b"c\x02\xac "),
        ("'a\\u20ac'", b"c\x04a\0\xac "),
        ("[1,,3]", b"a\x03I\0I\x02I\x04I\x06@\x02\x03"),
        ("[1,2,3]", b"A\x03I\x02I\x04I\x06$\0\x03"),
        ("Object.assign([1,2], { foo: 3 })", b"A\x02I\x02I\x04\"\x03fooI\x06$\x01\x02"),
        ("[1.5,'x']", b"A\x02N\0\0\0\0\0\0\xf8?\"\x01x$\0\x02"),
        (
            "{a:1,5:2,4294967294:3,4294967295:4}",
            b"oI\x0aI\x04N\0\0\xc0\xff\xff\xff\xefAI\x06\"\x01aI\x02\"\x0a4294967295I\x08{\x04",
        ),
        ("new Map([[1,2]])", b";I\x02I\x04:\x02"),
        ("new Set([1])", b"'I\x02,\x01"),
        ("/a/giv", b"R\"\x01a\x83\x02"),
        ("Object(1n)", b"z\x10\x01\0\0\0\0\0\0\0"),
        ("Object('st')", b"s\"\x02st"),
        ("Object(true)", b"y"),
        ("new Date(0)", b"D\0\0\0\0\0\0\0\0"),
        ("new Uint8Array([1,2]).buffer", b"B\x02\x01\x02"),
        ("new ArrayBuffer(2, { maxByteLength: 8 })", b"~\x02\x08\0\0"),
        (
            "Object.defineProperty(new TypeError('m', { cause: 5 }), 'stack', { value: 'S' })",
            b"rTm\"\x01mcI\x0as\"\x01S.",
        ),
        ("Object.defineProperty(new Error(), 'stack', { value: 'S' })", b"rs\"\x01S."),
        (
            "(() => { const e = new Error('q'); e.cause = e; return Object.defineProperty(e, 'stack', { value: 'S' }); })()",
            b"rm\"\x01qc^\0s\"\x01S.",
        ),
        ("[undefined, null, true, false]", b"A\x04_0TF$\0\x04"),
    ];
    for (expression, bytes) in cases {
        assert_eq!(serialized(expression), [b"\xff\x0f", *bytes].concat(), "{expression}");
    }
}

#[test]
fn views_follow_their_buffers() {
    assert_eq!(serialized("new Uint8Array([1,2])"), b"\xff\x0fB\x02\x01\x02VB\0\x02\0");
    assert_eq!(serialized("new DataView(new ArrayBuffer(2), 1)"), b"\xff\x0fB\x02\0\0V?\x01\x01\0");
}

#[test]
fn forms_that_only_v8_writes_are_read() {
    assert!(checked(
        b"\xff\x0f\\\x01\x02\x07\x08",
        "v => v instanceof Uint8Array && v.length === 2 && v[1] === 8"
    ));
    assert!(checked(b"\xff\x0f\\\x09\x01\x07", "v => v instanceof DataView && v.getUint8(0) === 7"));
    assert!(checked(b"\xff\x0fS\x02\xc3\xa9", "v => v === '\\xe9'"));
    assert!(checked(b"\xff\x0fU\xff\xff\xff\xff\x0f", "v => v === 4294967295"));
    assert!(checked(b"\xff\x0fA\x03I\x02-I\x06$\0\x03", "v => v.length === 3 && !(1 in v) && v[2] === 3"));
    assert!(checked(b"\xff\x0e\0\0T", "v => v === true"));
    assert!(checked(b"\xff\x0do\"\x01aB\x02\x01\x02VB\0\x02{\x01", "v => v.a[1] === 2"));
    assert!(checked(b"\xff\x0fc\x02\0\xd8", "v => v === '\\ud800'"));
}

#[test]
fn bytes_that_are_no_value_are_refused() {
    let version = "Unable to deserialize cloned data due to invalid or unsupported version.";
    for bytes in [&b"\x00\x0fT"[..], b"\xff\x0cT", b"\xff\x10T"] {
        assert_eq!(refused(bytes), format!("DataCloneError: {version}"), "{bytes:?}");
    }
    for bytes in [
        &b""[..],
        b"\xff",
        b"\xff\x0f",
        b"\xff\x0f!",
        b"\xff\x0f^\0",
        b"\xff\x0fo",
        b"\xff\x0fo{\x01",
        b"\xff\x0foT{\x01",
        b"\xff\x0fA\xff\xff\xff\xff\x0f",
        b"\xff\x0f\"\xff\xff\xff\xff\x0fx",
        b"\xff\x0fI\xff\xff\xff\xff\xff\xff",
        b"\xff\x0fc\x01a",
        b"\xff\x0f;I\x02:\x01",
        b"\xff\x0fR\"\x01(\0",
        b"\xff\x0fB\x03\0\0\0VW\0\x03\0",
        b"\xff\x0fB\x02\0\0VB\x01\x02\0",
        b"\xff\x0f~\x01\xff\xff\xff\xff\x0f\0",
        b"\xff\x0ft\0",
        b"\xff\x0fr!",
        b"\xff\x0f\\\x63",
        b"\xff\x0fa\x01\"\x06lengthI\x04@\x01\x01",
    ] {
        let error = refused(bytes);
        assert!(
            error.starts_with("DataCloneError: Unable to deserialize cloned data (at byte "),
            "{bytes:?}: {error}"
        );
    }
}
