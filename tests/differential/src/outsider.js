// The server outside that programs open sockets to.
export function serve(request) {
  const { pathname } = new URL(request.url);
  if (request.headers.get('upgrade') !== 'websocket' || pathname === '/outside/none') return new Response('plain', { status: 426 });
  const { 0: client, 1: server } = new WebSocketPair();
  server.accept();
  server.binaryType = 'arraybuffer';
  server.addEventListener('message', ({ data }) => {
    if (data === 'close') server.close(4000, 'asked');
    else if (data === 'close bare') server.close();
    else if (data === 'many') for (let n = 0; n < 50; n++) server.send(`${n}`);
    else server.send(data);
  });
  const headers = pathname === '/outside/protocol' ? { 'Sec-WebSocket-Protocol': 'b' } : {};
  return new Response(null, { status: 101, webSocket: client, headers });
}
