import { expect, test } from 'vitest';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import type { Reply } from '../service/service.ts';
import { json } from '../service/replies.ts';

const PERSONS = '{ persons { items { id } } }';

const withId = (status: number, id: string): Reply => json({}, status, { 'x-request-id': id });

test.each([
  ['an answer that is not GraphQL', withId(400, 'svc-1')],
  ['an answer with status 503', withId(503, 'svc-1')],
  ['an answer with status 429', json({}, 429, { 'x-request-id': 'svc-1', 'retry-after': '60' })],
  ['a refused token', json({ type: 'x', detail: 'y' }, 403, { 'x-request-id': 'svc-1' })],
])(
  'the error and the log line of %s have the id by which the service finds the request',
  async (_what, reply) => {
    await using gateway = await startGatewayOverService();
    gateway.service.answer(reply);
    const { errors } = await gateway.ask(PERSONS);
    expect(errors).toMatchObject([{ extensions: { serviceRequestId: 'svc-1' } }]);
    expect(lineOf(gateway)).toMatchObject({ serviceRequestId: 'svc-1' });
  },
);

test('with introspection off, only the log line has the id of the service', async () => {
  await using gateway = await startGatewayOverService({}, { config: { introspection: false } });
  gateway.service.answer(withId(400, 'svc-1'));
  const { errors } = await gateway.ask(PERSONS);
  expect(errors![0]!.extensions).toEqual({
    code: 'UPSTREAM_BAD_RESPONSE',
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    retryAfter: 60,
  });
  expect(lineOf(gateway)).toMatchObject({ serviceRequestId: 'svc-1' });
});

test.each<[string, (token: string) => string]>([
  ['is too long', () => 'x'.repeat(129)],
  ['has white space', () => 'a b'],
  ['has quotes', () => '"a"'],
  ['has the token', (token) => `echo-${token}`],
])('an id of the service that %s is not passed on', async (_what, idWith) => {
  await using gateway = await startGatewayOverService();
  const { pair } = (await gateway.store.read()).state!;
  gateway.service.answer(withId(400, idWith(pair.accessToken)));
  const { errors } = await gateway.ask(PERSONS);
  expect(errors![0]!.extensions).not.toHaveProperty('serviceRequestId');
  expect(lineOf(gateway)).not.toHaveProperty('serviceRequestId');
});

function lineOf({ logged }: { readonly logged: readonly Record<string, unknown>[] }) {
  return logged.findLast(({ msg }) => msg === 'request');
}
