import { expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { ask, gathered, partsOf, type Payload } from '../support/clients/multipart.ts';

test.each([
  null,
  '*/*',
  'application/json',
  'application/graphql-response+json, application/json;q=0.9',
  'application/json, text/event-stream',
  'application/json, multipart/mixed;q=0',
])('a client that accepts %s gets the whole list in one answer', async (accept) => {
  await using gateway = await startGatewayOverSandbox();
  const response = await ask(gateway, '{ allPersons @stream { id } }', {}, accept);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toMatch(/^application\/.*json/);
  const { data } = (await response.json()) as Payload;
  expect(data?.['allPersons']).toHaveLength(137);
});

test.each([
  'multipart/mixed',
  'multipart/mixed;deferSpec=20220824, application/json',
  'Multipart/Mixed; deferspec="20220824"',
  'application/json, multipart/mixed',
  'multipart/mixed;incrementalSpec=v0.2, multipart/mixed;deferSpec=20220824',
  'text/event-stream, multipart/mixed',
])('a client that accepts %s gets parts', async (accept) => {
  await using gateway = await startGatewayOverSandbox({ persons: 1 });
  const response = await ask(gateway, '{ allPersons @stream { id } }', {}, accept);
  expect(await gathered(partsOf(response))).toHaveLength(3);
});

test.each([
  'multipart/mixed;incrementalSpec=v0.2',
  'multipart/mixed;incrementalSpec=v0.2, application/json;q=0.9',
  'multipart/mixed;deferSpec=20230101',
  'text/event-stream',
])('a client that accepts only %s is refused with the supported format', async (accept) => {
  await using gateway = await startGatewayOverSandbox();
  const response = await ask(gateway, '{ allPersons @stream { id } }', {}, accept);
  expect(response.status).toBe(406);
  expect(response.headers.get('content-type')).toContain('application/json');
  expect(await response.json()).toEqual({
    errors: [
      {
        message: expect.stringContaining('deferSpec=20220824'),
        extensions: { code: 'BAD_USER_INPUT' },
      },
    ],
  });
  const plain = await ask(gateway, '{ allPersons @stream(if: false) { id } }', {}, accept);
  expect(plain.status).toBe(200);
});
