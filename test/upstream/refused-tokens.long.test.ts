import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { codesOf } from '../support/gateway/codes.ts';
import {
  refreshedOnce,
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { startService, type ServiceOptions } from '../service/service.ts';
import { fullSdl, fullService } from '../service/full.ts';
import { after, honest, refusal } from '../service/replies.ts';
import { startGateway, type TestGatewayOptions } from '../support/gateway/gateway.ts';

const PERSONS = 'query ($first: Int) { persons(first: $first) { items { id } } }';
const RENAME = 'mutation { rename(id: 1, name: "Ada") { name } }';
const UNAUTHORIZED = {
  errors: [{ path: ['persons'], extensions: { code: 'UPSTREAM_UNAUTHORIZED' } }],
};
const DAY = 86_400_000;

test('200 requests in flight with an expired token cause one refresh, and no caller sees an error', async () => {
  const CALLERS = 200;
  await using gateway = await startUsed({}, { config: { upstreamConcurrency: CALLERS } });
  const { service } = gateway;
  const before = { ...counts(gateway), executed: service.stats.graphql };
  const allThere = service.arrived(before.sent + CALLERS);
  gateway.expireTokens();
  service.answer(after(allThere, honest));
  const answers = await Promise.all(
    Array.from({ length: CALLERS }, (_, index) => gateway.ask(PERSONS, { first: index + 1 })),
  );
  expect(answers.filter(({ errors }) => errors)).toEqual([]);
  expect(counts(gateway)).toEqual({
    refreshes: before.refreshes + 1,
    grants: before.grants + 1,
    sent: before.sent + 2 * CALLERS,
  });
  expect(service.stats.graphql - before.executed).toBe(CALLERS);
  const replayed = service.received.slice(before.sent + CALLERS);
  expect(new Set(replayed.map(({ token }) => token)).size).toBe(1);
  expect(replayed.map(({ body }) => body).toSorted()).toEqual(
    service.received
      .slice(before.sent, before.sent + CALLERS)
      .map(({ body }) => body)
      .toSorted(),
  );
});

test.each(['token_expired', 'token_revoked', ''])(
  'a request that was refused (%j) with an older token is sent again with the newest, without a refresh',
  async (detail) => {
    await using gateway = await startUsed();
    const { service } = gateway;
    const { refreshes, sent } = counts(gateway);
    const renewed = Promise.withResolvers<void>();
    service.answer(after(renewed.promise, refusal(detail)), refusal('token_expired'), honest);
    const slow = gateway.ask(PERSONS, { first: 1 });
    await service.arrived(sent + 1);
    expect((await gateway.ask(PERSONS, { first: 2 })).errors).toBeUndefined();
    expect(counts(gateway).refreshes).toBe(refreshes + 1);
    renewed.resolve();
    expect((await slow).errors).toBeUndefined();
    expect(counts(gateway)).toMatchObject({ refreshes: refreshes + 1, sent: sent + 4 });
    expect(service.received.at(-1)!.token).toBe(service.received.at(-2)!.token);
    expect(service.received.at(-1)!.token).not.toBe(service.received.at(-4)!.token);
  },
);

test('a mutation is sent again after an expired token, since it was refused before it was executed', async () => {
  const { schema, sent } = fullService();
  const options = { snapshot: fullSdl, config: { mutations: 'all' } } as const;
  await using gateway = await startUsed({ schema }, options, '{ candidate(id: 1) { id } }');
  const { refreshes } = counts(gateway);
  gateway.expireTokens();
  expect(await gateway.ask(RENAME)).toEqual({ data: { rename: { name: 'Ada' } } });
  expect(sent.renames).toBe(1);
  expect(counts(gateway).refreshes).toBe(refreshes + 1);
});

test('a token that is refused as expired right after its refresh is a coded error, and not a loop', async () => {
  await using gateway = await startUsed();
  const { grants, sent } = counts(gateway);
  gateway.service.answer(refusal('token_expired'));
  expect(await gateway.ask(PERSONS)).toMatchObject(UNAUTHORIZED);
  // The new token is seconds old: the nodes of the service may not know it yet.
  expect(counts(gateway)).toMatchObject({ grants: grants + 1, sent: sent + 4 });

  gateway.age(10_000);
  const more = await Promise.all(
    Array.from({ length: 20 }, (_, index) => gateway.ask(PERSONS, { first: index + 1 })),
  );
  for (const answer of more) expect(answer).toMatchObject(UNAUTHORIZED);
  expect(counts(gateway)).toMatchObject({ grants: grants + 1, sent: sent + 24 });
});

test('an expired token whose refresh token is spent is TOKENS_LOST for all callers after four refusals, and not a loop', async () => {
  await using gateway = await startUsed();
  const { service, store } = gateway;
  const { pair } = (await store.read()).state!;
  await spend(service.url, pair.refreshToken);
  const { grants } = counts(gateway);
  gateway.expireTokens();
  service.answer(refusal('token_expired'));
  const askAll = async () => {
    const answers = await Promise.all(
      Array.from({ length: 5 }, (_, index) => gateway.ask(PERSONS, { first: index + 1 })),
    );
    return new Set(answers.flatMap(codesOf));
  };
  for (const wait of [0, 6_000, 61_000]) {
    gateway.age(wait);
    expect(await askAll()).toEqual(new Set(['UPSTREAM_UNREACHABLE']));
  }
  for (const wait of [601_000, 601_000]) {
    gateway.age(wait);
    expect(await askAll()).toEqual(new Set(['TOKENS_LOST']));
  }
  expect(counts(gateway).grants).toBe(grants + 4);
});

test('no request fails and no alarm is raised if the service knows a new access token late, and the old one no longer', async () => {
  await using service = await startService({ revokeOnRefresh: true });
  // Its clock is real, and its token new.
  await using gateway = await startGateway(service);
  await refreshedOnce(gateway.store);
  const { pair } = (await gateway.store.read()).state!;
  const knownFrom = performance.now() + 600;
  service.answer((response, received, sandbox) => {
    const isKnown = received.token !== pair.accessToken || performance.now() >= knownFrom;
    return (isKnown ? honest : refusal('token_unknown'))(response, received, sandbox);
  });
  const answers = await Promise.all(
    Array.from({ length: 120 }, async (_, index) => {
      await delay(index * 8);
      return gateway.ask(PERSONS, { first: index + 1 });
    }),
  );
  expect(answers.flatMap(({ errors = [] }) => errors)).toEqual([]);
  expect(service.stats.requests.oauthToken).toBe(1);
  expect(await gateway.gateway.metrics.text()).toContain('{trouble="unauthorized"} 0');
  expect(gateway.logged.filter(({ level }) => Number(level) > 30)).toEqual([]);
});

interface UsedGateway extends GatewayOverService {
  /** All tokens that the service has issued so far expire, without the gateway knowing. */
  expireTokens(): void;
}

/** A gateway whose newest token was accepted by the service at least once. */
async function startUsed(
  upstreamOptions: ServiceOptions = {},
  options: TestGatewayOptions = {},
  query = PERSONS,
): Promise<UsedGateway> {
  let ahead = 0;
  const gateway = await startGatewayOverService(
    { now: () => Date.now() + ahead, ...upstreamOptions },
    options,
  );
  expect((await gateway.ask(query)).errors).toBeUndefined();
  return {
    ...gateway,
    expireTokens: () => {
      ahead += DAY;
    },
  };
}

function counts({ service: { stats, received } }: GatewayOverService) {
  return {
    refreshes: stats.refreshes,
    grants: stats.requests.oauthToken,
    sent: received.length,
  };
}

/** Another client uses the refresh token. */
async function spend(url: string, refreshToken: string): Promise<void> {
  const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refreshToken });
  const response = await fetch(`${url}/oauth/token`, { method: 'POST', body });
  expect(response.status).toBe(200);
}
