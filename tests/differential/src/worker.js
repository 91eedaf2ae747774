export const variables = ({ env }) => [env.TEXT, env.VALUE, Object.keys(env).sort()];
export const request_of_client = ({ request }) => [request.method, new URL(request.url).pathname, request.headers.get('user-agent')];
export const wait_until = async ({ ctx }) => { ctx.waitUntil(scheduler.wait(1)); return typeof ctx.passThroughOnException; };
export const performance_now = () => [typeof performance.now(), performance.timeOrigin >= 0];
export const date = () => Date.now() > 1.7e12;
export const no_eval = () => { try { return new Function('return 1')(); } catch (e) { return e.name; } };
export const global_this = () => [globalThis === self, Object.prototype.toString.call(globalThis)];
export const tags = () => [new Headers(), new Response(), new URL('http://a'), new AbortController(), new ReadableStream(), crypto, new Event('x')].map(x => Object.prototype.toString.call(x));
