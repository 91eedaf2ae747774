// `/<library>` runs what a library's documentation shows first, and answers what that came to as JSON.
import { honoApp } from './hono.js';
import { ittyRouter } from './itty.js';
import { Party } from './party.js';
import { joseTokens, nanoids, ulids, xxhashes, yjsDocuments, zodSchemas } from './small.js';
import { Store } from './store.js';

export { Party, Store };

const programs = {
  hono: ({ env }) => honoApp(env),
  'itty-router': () => ittyRouter(),
  zod: zodSchemas,
  'drizzle-orm': ({ env }) => env.STORE.getByName('drizzle').run(),
  partyserver: async ({ env }) => (await env.PARTY.getByName('room').fetch('https://example.com/parties/party/room?x=1', { headers: { 'x-partykit-room': 'room' } })).json(),
  yjs: yjsDocuments,
  nanoid: nanoids,
  jose: joseTokens,
  ulid: ulids,
  'xxhash-wasm': xxhashes,
};

export default {
  async fetch(request, env) {
    const program = programs[new URL(request.url).pathname.slice(1)];
    if (program === undefined) return new Response('there is no such program', { status: 404 });
    try {
      return Response.json(await program({ env }));
    } catch (error) {
      return new Response(`threw ${error?.name}: ${error?.message}\n${error?.stack}`);
    }
  },
};
