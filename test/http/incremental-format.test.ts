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
  'application/json, multipart/mixed;incrementalSpec=v0.2',
  'multipart/mixed;incrementalSpec=v0.2, application/json;q=0.9',
  'multipart/mixed;deferSpec=20230101;q=0.8, */*;q=0.9',
  'multipart/mixed;deferSpec=20230101, application/json;q=0.9',
  'multipart/mixed;deferSpec=20230101, multipart/mixed;q=0.5, application/json;q=0.9',
  'application/json, application/unknown',
  'application/unknown, application/json;q=0.1',
  'text/x, application/json;q=0.5',
  'text/event-stream, application/*;q=0.1',
  'application/json;q=0, */*;q=0.1',
  'application/json;charset=latin1, application/json;q=0.3',
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
  'text/event-stream, multipart/mixed',
  'multipart/mixed;deferSpec=20230101, multipart/mixed;deferSpec=20220824',
  'multipart/mixed;incrementalSpec=v0.2, multipart/mixed;deferSpec=20220824',
  'multipart/mixed;q=0.5, application/json;q=0.4',
  'multipart/mixed;q=0.5, */*, application/*;q=0.4',
  'multipart/mixed;q=0.5, application/json;q=0, application/graphql-response+json;q=0',
])('a client that accepts %s gets parts', async (accept) => {
  await using gateway = await startGatewayOverSandbox({ persons: 1 });
  const response = await ask(gateway, '{ allPersons @stream { id } }', {}, accept);
  expect(response.headers.get('content-type')).toBe(
    'multipart/mixed; boundary="-"; deferSpec=20220824',
  );
  expect(await gathered(partsOf(response))).toHaveLength(3);
});

test.each([
  'multipart/mixed;incrementalSpec=v0.2',
  'multipart/mixed;deferSpec=20230101',
  'multipart/mixed;deferSpec=20220824;incrementalSpec=v0.2',
  'multipart/mixed;deferSpec=20230101, application/json;q=0',
  'text/event-stream',
  'text/event-stream, */*;q=0',
])('a client that accepts only %s is refused with the supported format', async (accept) => {
  await using gateway = await startGatewayOverSandbox();
  const response = await ask(gateway, '{ allPersons @stream { id } }', {}, accept);
  expect(response.status).toBe(406);
  expect(response.headers.get('content-type')).toContain('application/json');
  expect(await response.json()).toEqual({
    errors: [
      {
        message: expect.stringMatching(
          /"accept: multipart\/mixed;deferSpec=20220824", or accept application\/json/,
        ),
        extensions: { code: 'BAD_USER_INPUT' },
      },
    ],
  });
  expect(gateway.logged.at(-1)).toMatchObject({ status: 406, code: 'BAD_USER_INPUT' });
});

test.each<[accept: string, status: number, type: string]>([
  ['*/*', 200, 'application/json'],
  ['', 200, 'application/json'],
  ['application/*', 200, 'application/json'],
  ['application/json;q=0.2, text/html', 200, 'application/json'],
  ['application/json;q=0, */*', 200, 'application/graphql-response+json'],
  ['application/graphql-response+json;q=0, application/*', 200, 'application/json'],
  ['application/graphql-response+json, application/json', 200, 'application/graphql-response+json'],
  ['application/json, application/graphql-response+json', 200, 'application/json'],
  ['application/json;q=0.5, */*', 200, 'application/graphql-response+json'],
  ['multipart/mixed', 200, 'multipart/mixed'],
  ['multipart/mixed;deferSpec=20230101', 200, 'multipart/mixed'],
  ['multipart/mixed;q=0', 406, 'application/json'],
  ['*/*;q=0', 406, 'application/json'],
  ['application/json;q=0', 406, 'application/json'],
  ['application/json, */*;q=0', 200, 'application/json'],
  ['application/json;charset=latin1', 406, 'application/json'],
  ['application/json; charset=utf8', 200, 'application/json'],
  ['text/html', 406, 'application/json'],
  ['text/event-stream', 406, 'application/json'],
  ['image/*, text/*;q=0.5', 406, 'application/json'],
])(
  'an answer that is not incremental, for a client that accepts "%s", has status %i and %s',
  async (...row) => {
    const [accept, status, type] = row;
    await using gateway = await startGatewayOverSandbox();
    for (const query of [
      '{ __typename }',
      '{ __typename allPersons(limit: 1) @stream(if: false) { id } }',
    ]) {
      const response = await ask(gateway, query, {}, accept);
      const isIncremental = query.includes('@stream');
      expect([isIncremental, response.status]).toEqual([isIncremental, status]);
      expect(response.headers.get('content-type')?.split(';')[0]).toBe(type);
      expect(await response.text()).toContain(status === 200 ? '"__typename"' : '"BAD_USER_INPUT"');
    }
  },
);

test.each([
  ['application/json;q=0.9, application/graphql-response+json', 400],
  ['application/graphql-response+json;q=0.9, application/json', 200],
])('a client that accepts %s gets its preferred type, refusals too', async (accept, status) => {
  await using gateway = await startGatewayOverSandbox();
  const preferred = accept.split(', ')[1]!;
  const type = `${preferred}; charset=utf-8`;
  const answer = await ask(gateway, '{ __typename }', {}, accept);
  expect(answer.headers.get('content-type')).toBe(type);
  const refusal = await ask(gateway, '{ nothing }', {}, accept);
  expect([refusal.headers.get('content-type'), refusal.status]).toEqual([type, status]);
});
