import { serverAudits } from 'graphql-http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startFullFront, type Front } from '../support/gateway/front.ts';

let front: Front;
beforeAll(async () => {
  front = await startFullFront();
});
afterAll(() => front[Symbol.asyncDispose]());

/**
 * A GET needs a header that pages of other sites cannot send without a preflight; the audits do not send it.
 * Forms are refused for the same reason. No audit requires them: what audit 5A70 calls a form is a GET.
 */
const PREFLIGHT = { 'apollo-require-preflight': 'true' };

const audits = serverAudits({
  url: () => `${front.url}/graphql`,
  fetchFn: (url: string, init: RequestInit = {}) =>
    fetch(url, {
      ...init,
      headers: {
        ...Object.fromEntries(new Headers(init.headers)),
        ...(init.method !== 'POST' && PREFLIGHT),
      },
    }),
});

test.each(audits.map(({ id, name, fn }) => [`${id} ${name}`, fn] as const))('%s', async (_, fn) => {
  expect(await fn()).toMatchObject({ status: 'ok' });
});
