// Runs the program that a path names: `/worker/<group>/<name>` in the Worker, `/object/<group>/<name>` in an object of its
// own. `/` lists the paths.
import { DurableObject } from 'cloudflare:workers';

import * as alarms from './alarms.js';
import * as clone from './clone.js';
import * as compression from './compression.js';
import * as crypto from './crypto.js';
import * as d1 from './d1.js';
import * as encoding from './encoding.js';
import * as events from './events.js';
import * as forms from './forms.js';
import * as headers from './headers.js';
import * as hibernation from './hibernation.js';
import * as http from './http.js';
import * as kv from './kv.js';
import * as node_assert from './node_assert.js';
import * as node_buffer from './node_buffer.js';
import * as node_crypto from './node_crypto.js';
import * as node_hooks from './node_hooks.js';
import * as node_small from './node_small.js';
import * as node_stream from './node_stream.js';
import * as node_url from './node_url.js';
import * as node_util from './node_util.js';
import * as objects from './objects.js';
import * as order from './order.js';
import * as outside from './outside.js';
import * as rpc from './rpc.js';
import * as sockets from './sockets.js';
import * as sql from './sql.js';
import * as streams from './streams.js';
import * as tcp from './tcp.js';
import * as url from './url.js';
import * as wasm from './wasm.js';
import * as worker from './worker.js';
import { serve } from './outsider.js';
import { show } from './show.js';

export { Alarming } from './alarming.js';
export { Partner } from './partner.js';
export { Remote } from './remote.js';
export { Room } from './room.js';

const everywhere = { clone, compression, crypto, encoding, events, forms, headers, http, order, sockets, streams, url, wasm };
const node = { node_assert, node_buffer, node_crypto, node_small, node_stream, node_url, node_util };
const places = {
  worker: { ...everywhere, ...node, d1, node_hooks, objects, outside, rpc, tcp, worker },
  object: { alarms, d1, hibernation, kv, node_hooks, objects, order, outside, rpc, sql, tcp },
};

async function run(place, request, more) {
  const [, , group, name] = new URL(request.url).pathname.split('/');
  const program = places[place]?.[group]?.[name];
  if (!program) return new Response('there is no such program', { status: 404 });
  let text;
  try {
    text = await show(await program({ request, ...more }));
  } catch (error) {
    text = `threw ${error?.name}: ${error?.message}`;
  }
  return new Response(text);
}

export default {
  async fetch(request, env, ctx) {
    const { pathname } = new URL(request.url);
    if (pathname === '/') {
      const paths = Object.entries(places).flatMap(([place, groups]) =>
        Object.entries(groups).flatMap(([group, programs]) =>
          Object.keys(programs).map(name => `/${place}/${group}/${name}`)));
      return Response.json(paths.sort());
    }
    if (pathname.startsWith('/outside/')) return serve(request);
    if (pathname.startsWith('/object/')) return env.SUBJECT.getByName(pathname).fetch(request);
    return run('worker', request, { env, ctx });
  },
};

export class Subject extends DurableObject {
  fetch(request) {
    return run('object', request, { env: this.env, ctx: this.ctx, storage: this.ctx.storage });
  }
}
