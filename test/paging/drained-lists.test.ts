/** What `all…` returns, how many requests it sends, and what of a list is remembered how long. */
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { readPair } from '../../src/tokens/pair.ts';
import { importPair } from '../../src/tokens/state.ts';
import {
  failure,
  makeExecutableSchema,
  type PageArgs,
  pageOf,
  personPages,
  PERSONS,
} from '../service/lists.ts';
import { after, honest, json, text } from '../service/replies.ts';
import type { Reply } from '../service/service.ts';
import { documentedSdl } from '../support/documented-sdl.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { startTeams } from '../support/gateway/teams.ts';
import { MINUTE } from '../support/random/manual-clock.ts';

interface People {
  allPersons: { id: string }[];
}

test('`limit` stops the drain, no more records are requested, and all drains of an operation have one limit', async () => {
  // As many as the list has are not too many.
  await using gateway = await startGatewayOverService({}, { config: { drainMaxItems: 137 } });
  for (const limit of [0, 1, 50, 51, 120, 136, 137, 138, 1000, null]) {
    const before = gateway.service.received.length;
    const { data } = await gateway.ask<People>(`{ allPersons(limit: ${limit}) { id } }`);
    const expected = Math.min(limit ?? 137, 137);
    expect(data.allPersons).toHaveLength(expected);
    const requests = gateway.service.received.length - before;
    if (limit !== null) expect(requests).toBe(Math.ceil(expected / 50));
  }
  const both = await gateway.ask(
    '{ a: allPersons(limit: 70) { id } b: allPersons(limit: 70) { id } }',
  );
  expect(both.errors).toMatchObject([{ extensions: { code: 'DRAIN_LIMIT_EXCEEDED' } }]);
});

const failing = () => {
  throw failure('The index is rebuilding.', { code: 'FORBIDDEN' });
};
const nothing = () => undefined;
const stuck = { items: [], pageInfo: { first: 50, hasNextPage: true, endCursor: '96' } };
const reader = { apiKeys: [entryFor('key', 'app', 'read')], jwt: undefined };
const limited = json({}, 429, { 'retry-after': '60' });

interface Facts {
  readonly code: string;
  readonly drained: number;
  readonly [fact: string]: unknown;
}

interface Ending {
  /** What the list does instead of returning its third page. */
  readonly third?: () => unknown;
  /** How the service answers the request for that page. */
  readonly reply?: Reply;
  readonly config?: TestGatewayOptions['config'];
}

test.each<[string, Ending, Facts, RegExp]>([
  [
    'a page fails',
    { third: failing },
    { code: 'DRAIN_INTERRUPTED', reason: 'FORBIDDEN', drained: 96 },
    /index is rebuilding/,
  ],
  [
    'the service limits the rate',
    { reply: limited },
    { code: 'DRAIN_INTERRUPTED', reason: 'UPSTREAM_RATE_LIMITED', retryAfter: 60, drained: 96 },
    /Try again in 60 s/,
  ],
  [
    'its cursor does not move',
    { third: () => stuck },
    { code: 'DRAIN_STALLED', drained: 96 },
    /does not lead there.*has none of them: read these with `limit: 96`\./,
  ],
  [
    'it has too many records',
    { config: { drainMaxItems: 96 } },
    { code: 'DRAIN_LIMIT_EXCEEDED', drained: 96, max: 96 },
    /raise DRAIN_MAX_ITEMS/,
  ],
  [
    'its caller has used up the pages of a minute',
    { config: { pagesPerMinute: 2 } },
    {
      code: 'RATE_LIMITED',
      drained: 48,
      limit: 'PAGES_PER_MINUTE',
      pages: 3,
      pagesPerMinute: 2,
      retryAfter: 30,
    },
    /2 pages a minute/,
  ],
  [
    'its caller has no scope for whole lists',
    { config: { auth: reader } },
    { code: 'FORBIDDEN', scope: 'drain', drained: 528 },
    /the scope "drain"/,
  ],
])(
  'a drain that ends because %s is an error from which every record can be read, and is never cut silently',
  async (_why, { third = nothing, reply = honest, config = {} }, facts, message) => {
    let isOver = false;
    const all = Array.from({ length: 700 }, (_, index) => ({ id: `p${index}` }));
    const persons = (_: unknown, args: PageArgs) =>
      (!isOver && args.after === '96' ? third() : undefined) ?? pageOf(all, args);
    const schema = makeExecutableSchema(documentedSdl, { Query: { persons } });
    await using gateway = await startGatewayOverService({ schema }, { config });
    gateway.service.answer(honest, honest, reply, honest);
    const ask = (query: string, variables = {}) =>
      gateway.ask<People>(query, variables, { headers: { 'x-api-key': 'key' } });
    const { data, errors } = await ask('{ allPersons { id } }');
    expect(data).toEqual({ allPersons: null });
    const { resumeAfter, ...extensions } = errors![0]!.extensions;
    expect(errors).toMatchObject([{ path: ['allPersons'] }]);
    expect(extensions).toEqual(facts);
    expect(errors![0]!.message).toMatch(message);
    isOver = true;
    gateway.age(MINUTE);
    const part = 'query ($n: Int, $after: String) { allPersons(limit: $n, after: $after) { id } }';
    const first = await ask(part, { n: facts.drained });
    gateway.age(MINUTE);
    const rest = await ask(part, { n: 54, after: resumeAfter });
    expect([...first.data.allPersons, ...rest.data.allPersons]).toEqual(
      all.slice(0, facts.drained + 54),
    );
  },
);

test('a list that was drained before is read with DRAIN_CONCURRENCY pages in flight, and returned as it is now', async () => {
  await using gateway = await startGatewayOverService({ persons: 2_000 });
  const { service } = gateway;
  let most = 0;
  service.answer(async (...exchange) => {
    // All other requests that are sent by now arrive before this one is answered.
    for (let turn = 0; turn < 10; turn += 1) await setImmediate();
    most = Math.max(most, service.inFlight);
    await honest(...exchange);
  });
  const expectDrained = async () =>
    expect((await gateway.ask('{ allPersons { id } }')).data).toEqual({
      allPersons: service.persons.all().map(({ id }) => ({ id })),
    });
  await expectDrained();
  // The first page tells the page limit; the others leave room for an overlap with the next one.
  expect([most, service.received.length]).toEqual([1, 1 + Math.ceil((2_000 - 50) / 48)]);
  service.persons.insert(0, 60);
  service.persons.insert(700, 3);
  service.persons.remove(1_200, 55);
  service.persons.move(1_900, 10);
  await expectDrained();
  expect(most).toBe(8);
});

test.each<[string, (gateway: GatewayOverService) => Promise<unknown>]>([
  ['a mutation', (gateway) => gateway.ask('mutation { touch { id } }')],
  [
    'a mutation whose answer is lost',
    ({ service, ask }) => {
      service.answer(text('', 502), honest);
      return ask('mutation { touch { id } }');
    },
  ],
  [
    'another token set',
    async ({ service, store, ask }) => {
      const pair = readPair(await (await fetch(service.makeNewSet())).json())!;
      const imported = { pair, service: service.url, by: 'test', replace: true };
      expect(await store.update(importPair(imported))).toBe('imported');
      // The gateway notices the other set when it sends its next request.
      await ask('{ persons(first: 1) { items { id } } }');
    },
  ],
])('a total and the ids that were not found are remembered until %s', async (_, happens) => {
  const snapshot = `${PERSONS} type Person { id: ID! } type Mutation { touch: Person }`;
  const present = Array.from({ length: 120 }, (_each, at) => `p${at}`);
  const schema = makeExecutableSchema(snapshot, { Query: { persons: personPages(present) } });
  const config = { mutations: 'all' } as const;
  await using gateway = await startGatewayOverService({ schema }, { snapshot, config });
  const query = '{ person(id: "new") { id } personsConnection { totalCount } }';
  const ask = async () => (await gateway.ask(query)).data;
  expect(await ask()).toEqual({ person: null, personsConnection: { totalCount: 120 } });
  present.splice(60, 0, 'new');
  expect(await ask()).toEqual({ person: null, personsConnection: { totalCount: 120 } });
  await happens(gateway);
  expect(await ask()).toEqual({ person: { id: 'new' }, personsConnection: { totalCount: 121 } });
});

interface Teams {
  allTeams: { number: number }[];
  teamsConnection: { totalCount: number; pageInfo: { endCursor: string } };
}

test.each([
  ['(lead: null)', ''],
  ['(where: { lead: null })', '(where: {})'],
])('a null filter %s and an omitted one %s are two lists', async (filtered, all) => {
  await using gateway = await startTeams({ teams: 120 });
  const ask = async (list: string) => (await gateway.ask<Teams>(`{ ${list} }`)).data;
  const [few, many, fewCounted, manyCounted] = await Promise.all([
    ask(`allTeams${filtered} { number }`),
    ask(`allTeams${all} { number }`),
    ask(`teamsConnection${filtered} { totalCount }`),
    ask(`teamsConnection${all} { totalCount }`),
  ]);
  expect([few.allTeams.length, many.allTeams.length]).toEqual([60, 120]);
  expect(fewCounted.teamsConnection.totalCount).toBe(60);
  expect(manyCounted.teamsConnection.totalCount).toBe(120);
});

test('a cursor is valid with a null filter and without it: Relay sends an unused filter as null', async () => {
  await using gateway = await startTeams({ teams: 120 });
  const query = `query ($lead: String, $after: String) {
    teamsConnection(lead: $lead, first: 3, after: $after) { pageInfo { endCursor } }
  }`;
  const { data } = await gateway.ask<Teams>(query, { lead: null });
  const { endCursor } = data.teamsConnection.pageInfo;
  expect((await gateway.ask(query, { after: endCursor })).errors).toBeUndefined();
});

test.each(['before', 'while'])(
  'a drain that starts after a mutation joins none that began %s it was sent',
  async (when) => {
    await using gateway = await startTeams({ teams: 120 });
    const { service } = gateway;
    const [page, sent] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const drain = () => gateway.ask<Teams>('{ allTeams { number } }');
    const change = () => gateway.ask('mutation { addTeam { id } }');
    const held = after(page.promise, honest);
    if (when === 'before') service.answer(held, honest);
    else service.answer(after(sent.promise, honest), held, honest);
    const changing = when === 'before' ? undefined : change();
    await service.arrived(changing ? 1 : 0);
    const earlier = drain();
    await service.arrived(changing ? 2 : 1);
    sent.resolve();
    await (changing ?? change());
    // It reads its own pages while the earlier walk still waits for its first one.
    expect((await drain()).data.allTeams).toHaveLength(121);
    page.resolve();
    await earlier;
  },
);

test('lists below several mutations of one operation are read after the last mutation', async () => {
  await using gateway = await startTeams({ teams: 1, members: 8 });
  const add = 'addMember(team: "0") { membersConnection(first: 20) { nodes { id } } }';
  const { data } = await gateway.ask(`mutation { one: ${add} two: ${add} }`);
  const whole = { membersConnection: { nodes: { length: 10 } } };
  expect(data).toMatchObject({ one: whole, two: whole });
  expect(gateway.service.received[0]!.body).toContain('two: addMember');
});
