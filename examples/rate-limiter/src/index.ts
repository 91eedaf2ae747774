// A rate limiter: one token bucket for each key, whichever ingress a request comes to.

import { DurableObject } from "cloudflare:workers";

interface Env {
  LIMIT: number;
  PERIOD_SECONDS: number;
  BUCKETS: DurableObjectNamespace<TokenBucket>;
}

/** What is kept of a bucket: how full it was, and when (milliseconds since 1970). */
interface Level {
  tokens: number;
  at: number;
}

interface Verdict {
  allowed: boolean;
  remaining: number;
  /** How long until there is a token again; 0 where there is one. */
  waitMs: number;
}

export class TokenBucket extends DurableObject<Env> {
  take(): Verdict {
    const { LIMIT: limit, PERIOD_SECONDS: seconds } = this.env;
    const perMs = limit / (seconds * 1000);
    const now = Date.now();
    const level = this.ctx.storage.kv.get<Level>("level") ?? { tokens: limit, at: now };
    // A clock that was set back fills nothing.
    let tokens = Math.min(limit, level.tokens + Math.max(0, now - level.at) * perMs);
    const allowed = tokens >= 1;
    if (allowed) {
      tokens -= 1;
      // A refusal writes nothing: it costs no more than a read.
      this.ctx.storage.kv.put("level", { tokens, at: now } satisfies Level);
    }
    const waitMs = tokens >= 1 ? 0 : Math.ceil((1 - tokens) / perMs);
    return { allowed, remaining: Math.floor(tokens), waitMs };
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const key = request.headers.get("x-api-key");
    if (!key) {
      return new Response("who are you? send the header x-api-key\n", { status: 401 });
    }
    const { allowed, remaining, waitMs } = await env.BUCKETS.getByName(key).take();
    const headers = { "x-ratelimit-limit": String(env.LIMIT), "x-ratelimit-remaining": String(remaining) };
    if (!allowed) {
      const retry = { "retry-after": String(Math.ceil(waitMs / 1000)) };
      return new Response("too many requests\n", { status: 429, headers: { ...headers, ...retry } });
    }
    return new Response("here you are\n", { headers });
  },
} satisfies ExportedHandler<Env>;
