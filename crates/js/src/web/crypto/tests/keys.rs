//! Keys: formats, usages, and the exceptions by which a wrong one is refused.

use super::with;

#[test]
fn a_key_does_only_what_its_usages_say() {
    let body = "
        const key = await secret('00'.repeat(16), 'AES-GCM', 'encrypt');
        const iv = new Uint8Array(12);
        return [await failure(subtle.decrypt({ name: 'AES-GCM', iv }, key, iv)),
            await failure(subtle.encrypt({ name: 'AES-CBC', iv: new Uint8Array(16) }, key, iv)),
            await failure(secret('00'.repeat(16), 'AES-GCM', 'sign')),
            await failure(secret('00'.repeat(16), 'AES-GCM')),
            await failure(secret('00'.repeat(16), 'AES-GCM', 'paint')),
            await failure(secret('00'.repeat(15), 'AES-GCM', 'encrypt'))];";
    assert_eq!(
        with(body),
        r#"["InvalidAccessError: Requested key usage \"decrypt\" does not match any usage listed in this CryptoKey.","InvalidAccessError: Requested algorithm \"AES-CBC\" does not match this CryptoKey's algorithm \"AES-GCM\".","SyntaxError: A AES-GCM key cannot have the usage \"sign\".","SyntaxError: Secret/private CryptoKeys must have at least one usage.","TypeError: \"paint\" is not a key usage","DataError: Imported AES key length must be 128, 192, or 256 bits but provided 120."]"#
    );
}

#[test]
fn a_key_that_is_not_extractable_stays_inside() {
    let body = "
        const key = await subtle.generateKey({ name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
        const pair = await subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign', 'verify']);
        return [await failure(subtle.exportKey('raw', key)), await failure(subtle.exportKey('pkcs8', pair.privateKey)),
            (await subtle.exportKey('raw', pair.publicKey)).byteLength, pair.publicKey.extractable, JSON.stringify(key)];";
    assert_eq!(
        with(body),
        r#"["InvalidAccessError: Attempt to export non-extractable HMAC key.","InvalidAccessError: Attempt to export non-extractable ECDSA key.",65,true,"{}"]"#
    );
}

#[test]
fn attributes_of_a_key_are_copies() {
    let body = "
        const key = await subtle.generateKey({ name: 'HMAC', hash: 'SHA-512' }, true, ['verify', 'sign']);
        key.algorithm.hash.name = 'SHA-1';
        key.usages.length = 0;
        const data = ascii('x');
        return [key.type, (await subtle.sign('HMAC', key, data)).byteLength, key.algorithm === key.algorithm,
            String(key), key.algorithm.length];";
    assert_eq!(with(body), r#"["secret",64,true,"[object CryptoKey]",1024]"#);
}

#[test]
fn every_format_gives_back_the_same_key() {
    let body = "
        const seen = [];
        const kinds = [
            [{ name: 'ECDSA', namedCurve: 'P-256' }, ['sign'], ['verify'], { name: 'ECDSA', hash: 'SHA-256' }],
            [{ name: 'ECDSA', namedCurve: 'P-384' }, ['sign'], ['verify'], { name: 'ECDSA', hash: 'SHA-1' }],
            [{ name: 'ECDSA', namedCurve: 'P-521' }, ['sign'], ['verify'], { name: 'ECDSA', hash: 'SHA-512' }],
            [{ name: 'Ed25519' }, ['sign'], ['verify'], 'Ed25519'],
        ];
        for (const [algorithm, signs, verifies, how] of kinds) {
            const pair = await subtle.generateKey(algorithm, true, [...signs, ...verifies]);
            const data = ascii('data');
            for (const format of ['pkcs8', 'jwk']) {
                const exported = await subtle.exportKey(format, pair.privateKey);
                const back = await subtle.importKey(format, exported, algorithm, false, signs);
                const signature = await subtle.sign(how, back, data);
                for (const format of ['raw', 'spki', 'jwk']) {
                    const exported = await subtle.exportKey(format, pair.publicKey);
                    const back = await subtle.importKey(format, exported, algorithm, false, verifies);
                    seen.push(await subtle.verify(how, back, signature, data), await subtle.verify(how, back, signature, ascii('date')));
                }
            }
        }
        return [seen.length, new Set(seen.filter((_, index) => index % 2 === 0)).size, seen[0], new Set(seen.filter((_, index) => index % 2 === 1)).size, seen[1]];";
    assert_eq!(with(body), "[48,1,true,1,false]");
}

#[test]
fn a_jwk_that_contradicts_itself_is_refused() {
    let body = "
        const algorithm = { name: 'ECDSA', namedCurve: 'P-256' };
        const pair = await subtle.generateKey(algorithm, true, ['sign', 'verify']);
        const other = await subtle.generateKey(algorithm, true, ['sign', 'verify']);
        const jwk = await subtle.exportKey('jwk', pair.privateKey);
        const { d } = await subtle.exportKey('jwk', other.privateKey);
        const attempt = (change, extractable = true) =>
            failure(subtle.importKey('jwk', { ...jwk, ...change }, algorithm, extractable, ['sign']));
        return [await attempt({}), await attempt({ d }), await attempt({ kty: 'RSA' }), await attempt({ crv: 'P-384' }),
            await attempt({ use: 'enc' }), await attempt({ key_ops: ['verify'] }), await attempt({ ext: false }),
            await attempt({ alg: 'ES384' }), await attempt({ x: undefined }), await attempt({ x: jwk.y }), await attempt({ d: '*' })];";
    assert_eq!(
        with(body),
        r#"["no error","DataError: The private and the public part of the JWK do not belong together.","DataError: The JWK's \"kty\" must be \"EC\".","DataError: The JWK's \"crv\" must be \"P-256\".","DataError: The JWK's \"use\" must be \"sig\".","DataError: The JWK's \"key_ops\" does not have every usage asked for.","DataError: The JWK's \"ext\" does not let the key be extractable.","DataError: The JWK's \"alg\" must be \"ES256\".","DataError: The JWK has no \"x\".","DataError: The key is not valid JWK for this algorithm.","DataError: The JWK member \"d\" is not base64url."]"#
    );
}

#[test]
fn two_sides_agree_on_one_secret() {
    let body = "
        const seen = [];
        for (const algorithm of [{ name: 'ECDH', namedCurve: 'P-256' }, { name: 'ECDH', namedCurve: 'P-384' }, { name: 'ECDH', namedCurve: 'P-521' }, { name: 'X25519' }]) {
            const [a, b] = [await subtle.generateKey(algorithm, true, ['deriveBits']), await subtle.generateKey(algorithm, true, ['deriveBits'])];
            const agree = (mine, theirs, bits) => subtle.deriveBits({ name: algorithm.name, public: theirs.publicKey }, mine.privateKey, bits);
            const whole = await agree(a, b);
            seen.push(whole.byteLength, hex(whole) === hex(await agree(b, a)), hex(await agree(a, b, 128)) === hex(whole).slice(0, 32),
                await failure(agree(a, b, 4096)).then((text) => text.split(':')[0]));
        }
        return seen;";
    assert_eq!(
        with(body),
        r#"[32,true,true,"OperationError",48,true,true,"OperationError",66,true,true,"OperationError",32,true,true,"OperationError"]"#
    );
}

#[test]
fn a_public_point_of_small_order_gives_no_secret() {
    let body = "
        const { privateKey } = await subtle.generateKey('X25519', true, ['deriveBits']);
        const zero = await subtle.importKey('raw', new Uint8Array(32), 'X25519', true, []);
        return await failure(subtle.deriveBits({ name: 'X25519', public: zero }, privateKey, 256));";
    assert_eq!(with(body), "OperationError: The agreement failed.");
}

#[test]
fn keys_of_rsa_sign_and_encrypt_in_every_scheme() {
    let body = "
        const seen = [];
        const common = { modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' };
        const data = ascii('data');
        for (const [name, how] of [['RSASSA-PKCS1-v1_5', {}], ['RSA-PSS', { saltLength: 32 }]]) {
            const pair = await subtle.generateKey({ name, ...common }, true, ['sign', 'verify']);
            const signature = await subtle.sign({ name, ...how }, pair.privateKey, data);
            seen.push(signature.byteLength, await subtle.verify({ name, ...how }, pair.publicKey, signature, data),
                await subtle.verify({ name, ...how }, pair.publicKey, signature, ascii('date')));
            const jwk = await subtle.exportKey('jwk', pair.privateKey);
            const back = await subtle.importKey('jwk', jwk, { name, hash: 'SHA-256' }, true, ['sign']);
            seen.push(jwk.alg, hex(await subtle.exportKey('pkcs8', back)) === hex(await subtle.exportKey('pkcs8', pair.privateKey)),
                pair.publicKey.algorithm.modulusLength, [...pair.publicKey.algorithm.publicExponent].join());
        }
        const name = 'RSA-OAEP';
        const pair = await subtle.generateKey({ name, ...common }, true, ['encrypt', 'decrypt']);
        const label = ascii('label');
        const sealed = await subtle.encrypt({ name, label }, pair.publicKey, data);
        seen.push(hex(await subtle.decrypt({ name, label }, pair.privateKey, sealed)) === hex(data),
            await failure(subtle.decrypt({ name }, pair.privateKey, sealed)),
            await failure(subtle.encrypt({ name }, pair.publicKey, new Uint8Array(63))));
        return seen;";
    assert_eq!(
        with(body),
        r#"[128,true,false,"RS256",true,1024,"1,0,1",128,true,false,"PS256",true,1024,"1,0,1",true,"OperationError: Decryption failed.","OperationError: Encryption failed."]"#
    );
}

#[test]
fn what_is_no_key_at_all_is_refused_by_name() {
    let body = "
        const ec = { name: 'ECDSA', namedCurve: 'P-256' };
        const rsa = { name: 'RSA-PSS', hash: 'SHA-256' };
        return [await failure(subtle.importKey('spki', new Uint8Array(10), ec, true, ['verify'])),
            await failure(subtle.importKey('pkcs8', new Uint8Array(10), rsa, true, ['sign'])),
            await failure(subtle.importKey('raw', new Uint8Array(65), ec, true, ['verify'])),
            await failure(subtle.importKey('raw', new Uint8Array(65), { name: 'ECDSA', namedCurve: 'P-1' }, true, ['verify'])),
            await failure(subtle.importKey('pem', new Uint8Array(65), ec, true, ['verify'])),
            await failure(subtle.importKey('raw', new Uint8Array(65), rsa, true, ['verify'])),
            await failure(subtle.digest('SHA-3', new Uint8Array(1))),
            await failure(subtle.sign('HMAC', {}, new Uint8Array(1)))];";
    assert_eq!(
        with(body),
        r#"["DataError: The key is not valid SubjectPublicKeyInfo for this algorithm.","DataError: The key is not valid PKCS #8 for this algorithm.","DataError: The key is not valid raw data for this algorithm.","NotSupportedError: Unrecognized or unimplemented EC curve \"P-1\" requested.","TypeError: \"pem\" is not a key format: raw, pkcs8, spki or jwk","NotSupportedError: RSA-PSS has no format \"raw\".","NotSupportedError: Unrecognized or unimplemented digest algorithm requested.","TypeError: key must be a CryptoKey"]"#
    );
}

#[test]
fn keys_travel_wrapped_by_ciphers_that_encrypt() {
    let body = "
        const wrapping = await secret('00'.repeat(32), 'AES-GCM', 'wrapKey', 'unwrapKey');
        const how = { name: 'AES-GCM', iv: new Uint8Array(12) };
        const { privateKey } = await subtle.generateKey('Ed25519', true, ['sign', 'verify']);
        const seen = [];
        for (const format of ['pkcs8', 'jwk']) {
            const wrapped = await subtle.wrapKey(format, privateKey, wrapping, how);
            const back = await subtle.unwrapKey(format, wrapped, wrapping, how, 'Ed25519', true, ['sign']);
            seen.push(hex(await subtle.exportKey('pkcs8', back)) === hex(await subtle.exportKey('pkcs8', privateKey)));
        }
        return seen;";
    assert_eq!(with(body), "[true,true]");
}
