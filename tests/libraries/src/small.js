import { exportJWK, generateKeyPair, jwtVerify, SignJWT } from 'jose';
import { customAlphabet, nanoid } from 'nanoid';
import { decodeTime, monotonicFactory, ulid } from 'ulid';
import xxhash from 'xxhash-wasm';
import * as Y from 'yjs';
import { z } from 'zod';

export function zodSchemas() {
  const Player = z.object({ username: z.string().min(2), xp: z.coerce.number().int(), tags: z.array(z.enum(['a', 'b'])).default([]), mail: z.email().optional() });
  const bad = Player.safeParse({ username: 'x', xp: 'y', mail: 'nope' });
  return [Player.parse({ username: 'billie', xp: '100' }), bad.success, bad.error.issues.map(({ path, code }) => [path.join('.'), code]), z.union([z.string(), z.number()]).parse(5), z.toJSONSchema(z.object({ a: z.string() })).properties];
}

export function yjsDocuments() {
  const [one, two] = [new Y.Doc(), new Y.Doc()];
  const seen = [];
  one.on('update', update => Y.applyUpdate(two, update));
  two.getMap('map').observe(event => seen.push([...event.keysChanged].join()));
  one.getMap('map').set('a', { b: 1 });
  one.getText('text').insert(0, 'Hello!');
  one.getText('text').insert(5, ' world');
  one.getArray('list').push([1, 2]);
  const third = new Y.Doc();
  Y.applyUpdate(third, Y.encodeStateAsUpdate(two, Y.encodeStateVector(third)));
  return [two.getMap('map').toJSON(), third.getText('text').toString(), third.getArray('list').toJSON(), seen];
}

export function nanoids() {
  const own = customAlphabet('ab', 30);
  return [nanoid().length, nanoid(10).length, /^[ab]{30}$/.test(own()), new Set(Array.from({ length: 100 }, () => nanoid())).size];
}

export function ulids() {
  const next = monotonicFactory();
  const all = [next(1000), next(1000), next(1000)];
  return [ulid(1).slice(0, 10), ulid().length, decodeTime(ulid(1469918176385)), all.toSorted().join() === all.join()];
}

export async function joseTokens() {
  const secret = new TextEncoder().encode('a secret of more than thirty-two bytes');
  const token = await new SignJWT({ role: 'admin' }).setProtectedHeader({ alg: 'HS256' }).setSubject('ann').setIssuedAt(0).setExpirationTime('2h').sign(secret);
  const { payload } = await jwtVerify(token, secret, { currentDate: new Date(1000) });
  const late = await jwtVerify(token, secret, { currentDate: new Date(4e12) }).catch(error => error.code);
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
  const signed = await new SignJWT({}).setProtectedHeader({ alg: 'ES256' }).sign(privateKey);
  const verified = await jwtVerify(signed, publicKey);
  return [token.split('.')[0], payload.role, payload.sub, late, verified.protectedHeader.alg, (await exportJWK(publicKey)).crv];
}

export async function xxhashes() {
  const { h32ToString, h64, h64ToString, create64 } = await xxhash();
  const large = 'some text '.repeat(20_000);
  return [h32ToString('some text to hash'), h64ToString('some text to hash'), String(h64('', 1n)), h64ToString(large), create64().update(large).digest() === h64(large)];
}
