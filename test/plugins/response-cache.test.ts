import { useResponseCache } from '@graphql-yoga/plugin-response-cache';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import {
  ALL,
  FAILING,
  got,
  OTHER,
  send,
  settings,
  STREAMED,
  WHOLE,
  type Asked,
} from './requests.ts';

let plain: TestGateway;
let cached: TestGateway & { sandbox: Sandbox };
beforeAll(async () => {
  plain = await startGatewayOverSandbox({}, { config: settings });
  cached = await startGatewayOverSandbox(
    {},
    { config: settings, plugins: [useResponseCache({ session: () => null })] },
  );
});
afterAll(async () => {
  await plain[Symbol.asyncDispose]();
  await cached[Symbol.asyncDispose]();
});

const requests = () => cached.sandbox.stats.requests.graphql;

/** The cache adds them to answers that it keeps. */
async function withoutValidators(gateway: TestGateway, asked: Asked) {
  const { status, text: sent, headers } = await got(gateway, asked);
  // Those of wrong variables are in the document as the cache has changed it.
  const text = sent.replaceAll(/"locations":\[[^\]]*\],/g, '');
  const { etag, 'last-modified': _, ...others } = headers;
  return { answer: { status, text, headers: others }, etag };
}

test.each(ALL)('with a response cache, $name is answered as without it, twice', async (asked) => {
  const { answer } = await withoutValidators(plain, asked);
  expect((await withoutValidators(cached, asked)).answer).toEqual(answer);
  const isInParts = STREAMED.includes(asked);
  const again = await withoutValidators(cached, asked);
  if (!isInParts) expect(again.answer).toEqual(answer);
  else expect(again.answer.status).toBe(200);
});

describe('a second request', () => {
  test.each(WHOLE.filter(({ query, init }) => !init && !/__type\(/.test(query!)))(
    'for $name costs no upstream request',
    async (asked) => {
      const other = { ...asked, query: `# ${asked.name}\n${asked.query}` };
      const first = await withoutValidators(cached, other);
      expect(first.etag).toBeDefined();
      const before = requests();
      expect(await withoutValidators(cached, other)).toEqual(first);
      expect(requests()).toBe(before);
    },
  );

  test('for the same entity tag is told that nothing changed', async () => {
    const asked = { name: '', query: '{ persons(first: 2) { items { firstName } } }' };
    const { etag } = await withoutValidators(cached, asked);
    const before = requests();
    const headers = { 'if-none-match': etag! };
    const response = await send(cached, { ...asked, init: { headers } });
    expect([response.status, await response.text()]).toEqual([304, '']);
    expect(requests()).toBe(before);
    const stranger = await send(cached, { ...asked, init: { headers }, key: '' });
    expect(stranger.status).toBe(401);
  });

  test.each(FAILING)('for $name is answered anew: errors are not kept', async (asked) => {
    const first = await withoutValidators(cached, asked);
    expect(first.etag).toBeUndefined();
    expect(await withoutValidators(cached, asked)).toEqual(first);
  });

  test('of a caller who may not have the answer is refused', async () => {
    const asked = { name: '', query: '{ allPersons { lastName: firstName } }' };
    expect((await got(cached, asked)).status).toBe(200);
    const { text } = await got(cached, { ...asked, key: OTHER });
    expect(text).toContain('FORBIDDEN');
    expect(text).not.toContain('"data"');
  });

  test.each(STREAMED.slice(0, 2))('for $name has all records', async (asked) => {
    const other = { ...asked, query: `# again\n${asked.query}` };
    await got(cached, other);
    const before = requests();
    const { text } = await got(cached, other);
    expect(requests()).toBe(before);
    const [, json] = /\r\n\r\n(\{.*\})\r\n---/.exec(text)!;
    const { data } = JSON.parse(json!) as { data: { allPersons: unknown[] } };
    expect(data.allPersons.length).toBeGreaterThan(60);
    expect(text).not.toContain('responseCache');
  });
});

test('fields that the cache adds count in the limits of an operation', async () => {
  const fields = Array.from(
    { length: 15 },
    (_, i) => `a${i}: persons(first: 1) { items { firstName } }`,
  );
  const asked = { name: '', query: `{ ${fields.join(' ')} }` };
  expect((await got(plain, asked)).text).toContain('"data"');
  expect((await got(cached, asked)).text).toContain('OPERATION_TOO_COMPLEX');
});
