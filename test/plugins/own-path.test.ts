import type { Plugin } from 'graphql-yoga';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startFront, type Front } from '../http/front.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { everyHook } from '../support/gateway/every-hook.ts';

const ownPath: Plugin = {
  onRequest: ({ url, fetchAPI, endResponse }) => {
    if (url.pathname === '/report') endResponse(new fetchAPI.Response('mine'));
  },
};
const KEY = { 'x-api-key': 'known' };

let alone: Front;
let beside: Front;
beforeAll(async () => {
  const config = { auth: { apiKeys: [entryFor('known', 'known', 'read')], jwt: undefined } };
  alone = await startFront({ config, plugins: [ownPath] });
  beside = await startFront({ config, plugins: [everyHook(), ownPath] });
});
afterAll(async () => {
  await alone[Symbol.asyncDispose]();
  await beside[Symbol.asyncDispose]();
});

test.each([
  ['answers on it', '/report', KEY, 200],
  ['is not asked for a caller without a credential', '/report', {}, 401],
  ['leaves other paths unanswered', '/elsewhere', KEY, 404],
])('a plugin that serves a path of its own %s', async (_, path, headers, status) => {
  for (const { url, gateway } of [alone, beside]) {
    const through = new Request(`http://localhost${path}`, { headers });
    for (const response of [
      await fetch(`${url}${path}`, { headers }),
      await gateway.gateway.handler.fetch(through),
    ]) {
      expect(response.status).toBe(status);
      expect((await response.text()) === 'mine').toBe(status === 200);
    }
  }
});

test('a plugin that serves a path of its own is not asked under a foreign host name', async () => {
  for (const { gateway } of [alone, beside]) {
    const request = new Request('http://evil.example/report', { headers: KEY });
    expect((await gateway.gateway.handler.fetch(request)).status).toBe(421);
  }
});
