//! Web Crypto in a real isolate: known answers, what is refused and by which name, and Node as the peer (`peer`).

use crate::testing::{fails, run};

mod keys;
mod peer;

/// Hexadecimal digits, for the snippets.
const HELPERS: &str = "
    const { subtle } = crypto;
    const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
    const bytes = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
    const ascii = (text) => Uint8Array.from(text, (character) => character.charCodeAt(0));
    const secret = (key, algorithm, ...usages) => subtle.importKey('raw', bytes(key), algorithm, true, usages);
    const failure = (promise) => promise.then(() => 'no error', (error) => error.name + ': ' + error.message);";

fn with(body: &str) -> String {
    run(&format!("{HELPERS}{body}"))
}

#[test]
fn digests_are_those_of_the_standards() {
    let body = "
        const seen = [];
        for (const name of ['MD5', 'SHA-1', 'sha-256', 'SHA-384', { name: 'SHA-512' }]) {
            seen.push(hex(await subtle.digest(name, ascii('abc'))).slice(0, 16));
        }
        return seen;";
    assert_eq!(
        with(body),
        r#"["900150983cd24fb0","a9993e364706816a","ba7816bf8f01cfea","cb00753f45a35e8b","ddaf35a193617aba"]"#
    );
}

#[test]
fn random_values_fill_integer_arrays_of_bounded_size() {
    let body = "
        const array = crypto.getRandomValues(new Uint32Array(64));
        const name = (f) => { try { f(); return 'none'; } catch (error) { return error.name; } };
        return [new Set(array).size > 60,
            name(() => crypto.getRandomValues(new Uint8Array(65537))),
            name(() => crypto.getRandomValues(new Float64Array(1))),
            name(() => crypto.getRandomValues(new DataView(new ArrayBuffer(1)))),
            name(() => crypto.getRandomValues([1])),
            crypto.getRandomValues(new Uint8Array(65536)).length];";
    assert_eq!(
        with(body),
        r#"[true,"QuotaExceededError","TypeMismatchError","TypeMismatchError","TypeError",65536]"#
    );
}

#[test]
fn a_random_uuid_is_of_version_four() {
    let body = "
        const made = Array.from({ length: 50 }, () => crypto.randomUUID());
        const form = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
        return [new Set(made).size, made.every((one) => form.test(one))];";
    assert_eq!(with(body), "[50,true]");
}

#[test]
fn hmac_is_that_of_rfc_4231() {
    let body = "
        const key = await secret('4a656665', { name: 'HMAC', hash: 'SHA-256' }, 'sign', 'verify');
        const data = ascii('what do ya want for nothing?');
        const signature = await subtle.sign('HMAC', key, data);
        return [hex(signature), await subtle.verify('HMAC', key, signature, data),
            await subtle.verify('HMAC', key, signature, ascii('else')), await subtle.verify('HMAC', key, new Uint8Array(3), data)];";
    assert_eq!(
        with(body),
        r#"["5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",true,false,false]"#
    );
}

#[test]
fn gcm_is_that_of_the_vectors_of_nist_for_vectors_of_any_length_and_short_tags() {
    // "The Galois/Counter Mode of Operation", McGrew and Viega, test cases 4, 5 and 6.
    let body = "
        const key = await secret('feffe9928665731c6d6a8f9467308308', 'AES-GCM', 'encrypt', 'decrypt');
        const text = bytes('d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39');
        const additionalData = bytes('feedfacedeadbeeffeedfacedeadbeefabaddad2');
        const seen = [];
        for (const iv of ['cafebabefacedbaddecaf888', 'cafebabefacedbad', '9313225df88406e555909c5aff5269aa6a7a9538534f7da1e4c303d2a318a728c3c0c95156809539fcf0e2429a6b525416aedbf5a0de6a57a637b39b']) {
            const algorithm = { name: 'AES-GCM', iv: bytes(iv), additionalData };
            const sealed = await subtle.encrypt(algorithm, key, text);
            seen.push(hex(sealed.slice(-16)), hex(await subtle.decrypt(algorithm, key, sealed)) === hex(text));
            const short = await subtle.encrypt({ ...algorithm, tagLength: 96 }, key, text);
            seen.push(hex(short) === hex(sealed).slice(0, -8), await failure(subtle.decrypt(algorithm, key, short)));
        }
        return seen;";
    let rest = r#"true,true,"OperationError: Decryption failed.""#;
    assert_eq!(
        with(body),
        format!(
            r#"["5bc94fbc3221a5db94fae95ae7121a47",{rest},"3612d2e79e3b0785561be14aaca2fccb",{rest},"619cc5aefffe0bfa462af43c1699d050",{rest}]"#
        )
    );
}

#[test]
fn ctr_counts_in_the_bits_that_it_is_given() {
    // NIST SP 800-38A, F.5.1, and the wrap of a counter of eight bits.
    let body = "
        const key = await secret('2b7e151628aed2a6abf7158809cf4f3c', 'AES-CTR', 'encrypt', 'decrypt');
        const counter = bytes('f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff');
        const text = bytes('6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51');
        const whole = await subtle.encrypt({ name: 'AES-CTR', counter, length: 128 }, key, text);
        const narrow = await subtle.encrypt({ name: 'AES-CTR', counter, length: 8 }, key, new Uint8Array(32));
        counter[15] = 0;
        const wrapped = await subtle.encrypt({ name: 'AES-CTR', counter, length: 8 }, key, new Uint8Array(16));
        return [hex(whole), hex(narrow.slice(16)) === hex(wrapped),
            await failure(subtle.encrypt({ name: 'AES-CTR', counter, length: 8 }, key, new Uint8Array(256 * 16 + 1))),
            await failure(subtle.encrypt({ name: 'AES-CTR', counter, length: 0 }, key, text))];";
    assert_eq!(
        with(body),
        r#"["874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff",true,"OperationError: The data is longer than the counter can count.","OperationError: length must be from 1 to 128 bits, not 0."]"#
    );
}

#[test]
fn key_wrap_is_that_of_rfc_3394() {
    let body = "
        const wrapping = await secret('000102030405060708090a0b0c0d0e0f', 'AES-KW', 'wrapKey', 'unwrapKey');
        const key = await secret('00112233445566778899aabbccddeeff', 'AES-CBC', 'encrypt');
        const wrapped = await subtle.wrapKey('raw', key, wrapping, 'AES-KW');
        const back = await subtle.unwrapKey('raw', wrapped, wrapping, 'AES-KW', 'AES-CBC', true, ['encrypt']);
        const broken = new Uint8Array(wrapped.slice(0)); broken[0] ^= 1;
        return [hex(wrapped), hex(await subtle.exportKey('raw', back)),
            await failure(subtle.unwrapKey('raw', broken, wrapping, 'AES-KW', 'AES-CBC', true, ['encrypt']))];";
    assert_eq!(
        with(body),
        r#"["1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5","00112233445566778899aabbccddeeff","OperationError: Unwrapping failed."]"#
    );
}

#[test]
fn keys_derived_from_secrets_are_those_of_the_standards() {
    // RFC 5869, A.1; RFC 6070, 2 (SHA-1, 4,096 iterations).
    let body = "
        const hkdf = await subtle.importKey('raw', bytes('0b'.repeat(22)), 'HKDF', false, ['deriveBits']);
        const info = bytes('f0f1f2f3f4f5f6f7f8f9');
        const salt = bytes('000102030405060708090a0b0c');
        const first = await subtle.deriveBits({ name: 'HKDF', hash: 'SHA-256', salt, info }, hkdf, 336);
        const password = await subtle.importKey('raw', ascii('password'), 'PBKDF2', false, ['deriveBits', 'deriveKey']);
        const parameters = { name: 'PBKDF2', hash: 'SHA-1', salt: ascii('salt'), iterations: 4096 };
        const second = await subtle.deriveBits(parameters, password, 160);
        const key = await subtle.deriveKey(parameters, password, { name: 'AES-GCM', length: 128 }, true, ['encrypt']);
        return [hex(first), hex(second), hex(await subtle.exportKey('raw', key)) === hex(second).slice(0, 32)];";
    assert_eq!(
        with(body),
        r#"["3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865","4b007901b765489abead49d926f721d065a429c1",true]"#
    );
}

#[test]
fn work_beyond_its_bound_is_refused_before_it_begins() {
    let body = "
        const password = await subtle.importKey('raw', ascii('password'), 'PBKDF2', false, ['deriveBits']);
        const derive = (iterations, bits) =>
            failure(subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-256', salt: ascii('salt'), iterations }, password, bits));
        const rsa = { name: 'RSA-PSS', hash: 'SHA-256', publicExponent: new Uint8Array([1, 0, 1]) };
        const long = { name: 'PBKDF2', hash: 'SHA-256', salt: new Uint8Array(64 << 10), iterations: 1 };
        return [await derive(100001, 256), await derive(100000, 256 * 6), await derive(0, 256),
            await failure(subtle.deriveBits(long, password, 256 * 500)),
            await failure(subtle.generateKey({ ...rsa, modulusLength: 16384 }, true, ['sign', 'verify'])),
            await failure(subtle.generateKey({ ...rsa, modulusLength: 2048, publicExponent: new Uint8Array([5]) }, true, ['sign']))];";
    assert_eq!(
        with(body),
        r#"["NotSupportedError: Pbkdf2 failed: iteration counts above 100000 are not supported (requested 100001).","NotSupportedError: Pbkdf2 failed: iterations times blocks of output above 500000 are not supported (requested 600000).","OperationError: PBKDF2 requires a positive iteration count (requested 0).","OperationError: PBKDF2 failed.","OperationError: modulusLength must be a multiple of 8 from 1024 to 3072 to generate a key, not 16384.","OperationError: The \"publicExponent\" must be either 3 or 65537, but got 5."]"#
    );
}

#[test]
fn buffers_are_compared_in_constant_time() {
    let body = "
        return [subtle.timingSafeEqual(ascii('abc'), ascii('abc')), subtle.timingSafeEqual(ascii('abc').buffer, ascii('abd'))];";
    assert_eq!(with(body), "[true,false]");
    assert_eq!(
        fails("crypto.subtle.timingSafeEqual(new Uint8Array(1), new Uint8Array(2))"),
        "TypeError: Input buffers must have the same byte length."
    );
}

#[test]
fn a_digest_stream_hashes_what_is_written() {
    let body = "
        const stream = new crypto.DigestStream('SHA-256');
        const writer = stream.getWriter();
        writer.write(ascii('a')); writer.write('bc');
        await writer.close();
        const aborted = new crypto.DigestStream('md5');
        await aborted.abort(new RangeError('stop'));
        return [hex(await stream.digest).slice(0, 16), String(stream.bytesWritten), await failure(aborted.digest)];";
    assert_eq!(with(body), r#"["ba7816bf8f01cfea","3","RangeError: stop"]"#);
}
