import { Hono } from 'hono';
import { contextStorage, getContext } from 'hono/context-storage';
import { cors } from 'hono/cors';
import { HTTPException } from 'hono/http-exception';
import { validator } from 'hono/validator';

const app = new Hono();
app.use(contextStorage());
app.use('/api/*', cors());
app.use(async (c, next) => {
  c.set('user', c.req.header('x-user') ?? 'nobody');
  await next();
  c.header('x-seen', 'yes');
});
const deep = async () => {
  await new Promise(done => setTimeout(done, 1));
  return getContext().var.user;
};
app.get('/', c => c.text('Hello Hono!'));
app.get('/api/posts/:id', async c => c.json({ id: c.req.param('id'), page: c.req.query('page'), user: await deep() }));
app.post('/api/posts', validator('json', (value, c) => (typeof value.title === 'string' ? value : c.text('no title', 400))), c => c.json({ made: c.req.valid('json').title }, 201));
app.get('/fails', () => {
  throw new HTTPException(403, { message: 'not yours' });
});
app.notFound(c => c.text('nothing here', 404));

export async function honoApp(env) {
  const told = async (path, init) => {
    const response = await app.request(path, init, env);
    return [response.status, await response.text(), response.headers.get('x-seen')];
  };
  const json = body => ({ method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } });
  return [
    await told('/'), await Promise.all(['ann', 'bob'].map(name => told('/api/posts/7?page=2', { headers: { 'x-user': name } }))),
    await told('/api/posts', json({ title: 'a' })), await told('/api/posts', json({})), await told('/fails'), await told('/nowhere'),
  ];
}
