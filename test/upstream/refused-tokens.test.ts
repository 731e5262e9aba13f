import { expect, test } from 'vitest';
import { loggedFor } from '../support/gateway/operator-lines.ts';
import { startGatewayOverService, startOverFullService } from '../support/gateway/over-service.ts';
import { after, honest, json, refusal } from '../service/replies.ts';

// What the gateway does about its tokens then: test/tokens/keeper.test.ts.

const QUERY = 'query ($id: Int!) { candidate(id: $id) { id } }';
const RENAME = 'mutation { rename(id: 1, name: "Ada") { name } }';
const CALLERS = 40;

test('requests in flight with an expired token cause one refresh, each is sent again once, and no caller sees an error', async () => {
  await using gateway = await startUsed();
  const { service, ask } = gateway;
  const before = counts(gateway);
  const allThere = service.arrived(before.sent + CALLERS + 1);
  service.expire();
  service.answer(after(allThere, honest));
  const queries = Array.from({ length: CALLERS }, (_, at) => ask(QUERY, { id: at + 1 }));
  // A mutation as well: it was refused before it was executed.
  expect(await ask(RENAME)).toEqual({ data: { rename: { name: 'Ada' } } });
  expect((await Promise.all(queries)).filter(({ errors }) => errors)).toEqual([]);
  expect(gateway.sent.renames).toBe(1);
  const sent = before.sent + 2 * (CALLERS + 1);
  expect(counts(gateway)).toEqual({ grants: before.grants + 1, sent });
  const bodies = service.received.map(({ body }) => body).slice(before.sent);
  const [refused, replayed] = [bodies.slice(0, CALLERS + 1), bodies.slice(CALLERS + 1)];
  expect(replayed.toSorted()).toEqual(refused.toSorted());
  const tokens = service.received.slice(-CALLERS - 1).map(({ token }) => token);
  expect(new Set(tokens).size).toBe(1);
  // The service has accepted the new one, so its end is believed before a minute has passed.
  gateway.age(10_000);
  service.expire();
  expect((await ask(QUERY, { id: 1 })).errors).toBeUndefined();
});

test('a token that is refused as expired right after its refresh is a coded error, and not a loop', async () => {
  await using gateway = await startUsed();
  const { grants, sent } = counts(gateway);
  gateway.service.answer(refusal('token_expired'));
  const answer = await gateway.ask(QUERY, { id: 1 });
  const extensions = { code: 'UPSTREAM_UNAUTHORIZED', retryAfter: 60 };
  expect(answer).toMatchObject({ errors: [{ path: ['candidate'], extensions }] });
  expect(loggedFor(gateway.logged, answer)).toMatch(/although it has not expired/);
  // The new token is seconds old: the nodes of the service may not know it yet.
  expect(counts(gateway)).toEqual({ grants: grants + 1, sent: sent + 4 });
  gateway.age(10_000);
  await Promise.all([1, 2, 3].map((id) => gateway.ask(QUERY, { id })));
  expect(counts(gateway)).toEqual({ grants: grants + 1, sent: sent + 7 });
  expect(await gateway.gateway.metrics.metrics()).toContain('{trouble="unauthorized"} 1');
});

test('while a refresh fails, the caller is told when to try again, and only the operator why', async () => {
  await using gateway = await startUsed();
  gateway.service.tokenAnswers.next(json({}, 429, { 'retry-after': '120' }));
  gateway.service.expire();
  const answer = await gateway.ask(QUERY, { id: 1 });
  const extensions = { code: 'UPSTREAM_UNREACHABLE', retryAfter: 120 };
  const message = expect.stringContaining('Try again in 120 s.') as string;
  expect(answer).toMatchObject({ errors: [{ message, extensions }] });
  expect(loggedFor(gateway.logged, answer)).toMatch(/^The access token could not be refreshed/);
});

test('a caller who leaves while the token is renewed ends neither the renewal nor the wait of others, and its request is not sent again', async () => {
  await using gateway = await startGatewayOverService();
  const { service, store } = gateway;
  const query = 'query ($first: Int) { persons(first: $first) { items { id } } }';
  expect((await gateway.ask(query, { first: 1 })).errors).toBeUndefined();
  const { generation } = (await store.read()).state!;
  service.answer(refusal('token_expired'), refusal('token_expired'), honest);
  const renewal = service.tokenAnswers.hold('before');
  const caller = new AbortController();
  const left = Promise.allSettled([gateway.ask(query, { first: 2 }, { signal: caller.signal })]);
  await renewal.arrived;
  const staying = gateway.ask(query, { first: 3 });
  await service.arrived(3);
  caller.abort();
  await left;
  renewal.release();
  expect((await staying).errors).toBeUndefined();
  expect((await store.read()).state!.generation).toBe(generation + 1);
  const asked = service.received.map(({ body }) => JSON.parse(body).variables.first);
  expect(asked).toEqual([1, 2, 3, 3]);
});

/** A gateway whose newest token was accepted by the service at least once. */
async function startUsed() {
  const config = { mutations: 'all', upstreamConcurrency: CALLERS + 1 } as const;
  const gateway = await startOverFullService({ config });
  expect((await gateway.ask(QUERY, { id: 1 })).errors).toBeUndefined();
  return gateway;
}

function counts({ service: { exchanges, received } }: Awaited<ReturnType<typeof startUsed>>) {
  return { grants: exchanges.length, sent: received.length };
}
