import { AutoRouter, error, json, withParams } from 'itty-router';

const router = AutoRouter();
router
  .get('/hello/:name', ({ name }) => `Hello, ${name}!`)
  .get('/json/:id', withParams, ({ id, query }) => ({ id, query }))
  .get('/error', () => error(418, 'teapot'))
  .post('/echo', async request => json(await request.json()));

export async function ittyRouter() {
  const told = async (path, init) => {
    const response = await router.fetch(new Request(`https://example.com${path}`, init));
    return [response.status, await response.text()];
  };
  return [await told('/hello/you'), await told('/json/3?a=1&a=2'), await told('/error'), await told('/echo', { method: 'POST', body: '{"x":[1]}' }), await told('/none')];
}
