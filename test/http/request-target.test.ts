import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { everyHook } from '../support/gateway/every-hook.ts';
import { startFront } from './front.ts';

// RFC 9112, 3.2.2: a server accepts the absolute form, and its host replaces that of the header.
test.each([
  ['a usual address', '/graphql', 'localhost', 200],
  ['an absolute one', 'http://localhost:4000/graphql', 'localhost', 200],
  ['an absolute one with another host in the header', 'HTTP://127.0.0.1/graphql', 'a.example', 200],
  ['an absolute one of another host', 'http://evil.example/graphql', 'localhost', 421],
  ['an absolute one without a path', 'http://localhost?x', 'localhost', 404],
  ['an absolute one with a broken host', 'http://a@b/graphql', 'localhost', 400],
])('a request to %s is answered', async (_, path, host, status) => {
  for (const plugins of [[], [everyHook()]]) {
    await using front = await startFront({ plugins });
    const { hostname, port } = new URL(front.url);
    const sent = { hostname, port, path, method: 'POST', agent: false };
    const headers = { host, 'content-type': 'application/json' };
    const answer = await new Promise<{ status: number; body: string }>((resolve, reject) => {
      request({ ...sent, headers }, (response) => {
        text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
      })
        .on('error', reject)
        .end(JSON.stringify({ query: '{ me { id } }' }));
    });
    expect(answer.status).toBe(status);
    if (status === 200) expect(JSON.parse(answer.body)).toEqual({ data: { me: { id: 1 } } });
  }
});
