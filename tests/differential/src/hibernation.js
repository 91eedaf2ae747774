// What only an object has: sockets that it keeps while it sleeps.
import { errorName, thrown } from './show.js';

const make = () => { const { 0: a, 1: b } = new WebSocketPair(); return [a, b]; };

export const none = ({ ctx }) => [ctx.getWebSockets(), ctx.getWebSockets('a'), ctx.getWebSocketAutoResponse(), ctx.getHibernatableWebSocketEventTimeout()];
export const accept = ({ ctx }) => { const [, b] = make(); const before = ctx.getWebSockets().length; const given = ctx.acceptWebSocket(b, ['x']); return [given, before, ctx.getWebSockets().length, ctx.getWebSockets('x')[0] === b, ctx.getWebSockets('y').length, ctx.getTags(b), b.readyState]; };
export const accept_what = async ({ ctx }) => [await errorName(() => ctx.acceptWebSocket()), await errorName(() => ctx.acceptWebSocket({})), await errorName(() => ctx.acceptWebSocket(null))];
export const accept_accepted = async ({ ctx }) => { const [a, b] = make(); b.accept(); const first = await thrown(() => ctx.acceptWebSocket(b)); return [first, await thrown(() => ctx.acceptWebSocket(a))]; };
export const accept_twice = async ({ ctx }) => { const [, b] = make(); ctx.acceptWebSocket(b); return [await thrown(() => ctx.acceptWebSocket(b)), await thrown(() => b.accept())]; };
export const peer_used = async ({ ctx }) => { const [a, b] = make(); a.accept(); return thrown(() => ctx.acceptWebSocket(b)); };
export const too_many_tags = ({ ctx }) => { const [, b] = make(); return thrown(() => ctx.acceptWebSocket(b, Array.from({ length: 11 }, (_, i) => `${i}`))); };
export const same_tags = ({ ctx }) => { const [, b] = make(); ctx.acceptWebSocket(b, Array.from({ length: 11 }, () => 'same')); return ctx.getTags(b); };
export const ten_tags = ({ ctx }) => { const [, b] = make(); ctx.acceptWebSocket(b, Array.from({ length: 10 }, (_, i) => `${i}`)); return ctx.getTags(b).length; };
export const long_tags = async ({ ctx }) => { const [, b] = make(); const first = await thrown(() => ctx.acceptWebSocket(b, ['x'.repeat(257)])); ctx.acceptWebSocket(b, ['x'.repeat(256)]); return [first, ctx.getTags(b)[0].length]; };
export const odd_tags = async ({ ctx }) => { const [, b] = make(); ctx.acceptWebSocket(b, [1, null, '']); const [, c] = make(); return [ctx.getTags(b), ctx.getWebSockets('').length, await errorName(() => ctx.acceptWebSocket(c, 'text'))]; };
export const tags_of_others = async ({ ctx }) => { const [a, b] = make(); const first = await thrown(() => ctx.getTags(a)); b.accept(); return [first, await thrown(() => ctx.getTags(b))]; };
export const in_order = ({ ctx }) => { for (const name of ['a', 'b', 'c']) { const [, b] = make(); ctx.acceptWebSocket(b, [name, 'all']); } return [ctx.getWebSockets().map(s => ctx.getTags(s)[0]), ctx.getWebSockets('all').map(s => ctx.getTags(s)[0])]; };
export const auto_response = async ({ ctx }) => { ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair('ping', 'pong')); const p = ctx.getWebSocketAutoResponse(); const seen = [p.request, p.response, p instanceof WebSocketRequestResponsePair]; ctx.setWebSocketAutoResponse(); return [...seen, ctx.getWebSocketAutoResponse()]; };
export const auto_response_bounds = async ({ ctx }) => [await thrown(() => ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair('x'.repeat(2049), 'y'))), await thrown(() => ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair('x', 'y'.repeat(2049)))), await thrown(() => ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair('x'.repeat(2048), 'y'.repeat(2048)))), await errorName(() => ctx.setWebSocketAutoResponse({}))];
export const timestamp = ({ ctx }) => { const [, b] = make(); ctx.acceptWebSocket(b); return ctx.getWebSocketAutoResponseTimestamp(b); };
export const event_timeout = async ({ ctx }) => { ctx.setHibernatableWebSocketEventTimeout(1000); const first = ctx.getHibernatableWebSocketEventTimeout(); const error = await thrown(() => ctx.setHibernatableWebSocketEventTimeout(604800001)); ctx.setHibernatableWebSocketEventTimeout(0); return [first, error, ctx.getHibernatableWebSocketEventTimeout()]; };
export const send_close = async ({ ctx }) => { const [, b] = make(); ctx.acceptWebSocket(b); b.send('x'); b.close(1000, 'x'); return [b.readyState, await thrown(() => b.send('y')), ctx.getWebSockets().length]; };
export const attachment_bound = async ({ ctx }) => { const [, b] = make(); ctx.acceptWebSocket(b); b.serializeAttachment({ a: 1 }); return [b.deserializeAttachment(), ctx.getWebSockets()[0].deserializeAttachment()]; };
export const returned = async ({ ctx }) => { const [a, b] = make(); ctx.acceptWebSocket(b); const r = new Response(null, { status: 101, webSocket: a }); return r.status; };
