// A Worker: one function from a request to a response. It has no state, so any ingress runs it.

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    if (url.pathname === "/echo") {
      if (request.method !== "POST") {
        return new Response("POST something here\n", { status: 405, headers: { allow: "POST" } });
      }
      return Response.json({ type: request.headers.get("content-type"), text: await request.text() });
    }
    const name = decodeURIComponent(url.pathname.slice(1)) || "world";
    return new Response(`${env.GREETING}, ${name}!\n`);
  },
};
