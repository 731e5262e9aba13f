/** What `all…` returns, how many requests it sends, and what of a list is remembered how long. */
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { readPair } from '../../src/tokens/pair.ts';
import { importPair } from '../../src/tokens/state.ts';
import {
  makeExecutableSchema,
  type PageArgs,
  pageOf,
  personPages,
  PERSONS,
} from '../service/lists.ts';
import { after, honest } from '../service/replies.ts';
import type { Reply } from '../service/service.ts';
import { documentedSdl } from '../support/documented-sdl.ts';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { startTeams } from '../support/gateway/teams.ts';

interface People {
  allPersons: { id: string }[];
}

test('`limit` stops the drain, and no more records are requested', async () => {
  await using gateway = await startGatewayOverService();
  for (const limit of [0, 1, 50, 51, 120, 136, 137, 138, 1000]) {
    const before = gateway.service.stats.requests.graphql;
    const { data } = await gateway.ask<People>(`{ allPersons(limit: ${limit}) { id } }`);
    const expected = Math.min(limit, 137);
    expect(data.allPersons).toHaveLength(expected);
    expect(gateway.service.stats.requests.graphql - before).toBe(Math.ceil(expected / 50));
  }
});

test.each([
  ['a page fails', 96, 1_000, { code: 'DRAIN_INTERRUPTED', drained: 96 }],
  ['it has too many records', Infinity, 60, { code: 'DRAIN_LIMIT_EXCEEDED', drained: 60, max: 60 }],
])(
  'a drain that ends because %s is an error from which every record can be read, and is never cut silently',
  async (_why, failsBehind, max, extensions) => {
    let readable = failsBehind;
    const all = Array.from({ length: 150 }, (_, index) => ({ id: `p${index}` }));
    const persons = (_: unknown, args: PageArgs) => {
      if (Number(args.after ?? 0) >= readable) throw new Error('The index is rebuilding.');
      return pageOf(all, args);
    };
    const schema = makeExecutableSchema(documentedSdl, { Query: { persons } });
    const config = { drainMaxItems: max };
    await using gateway = await startGatewayOverService({ schema }, { config });
    const { data, errors } = await gateway.ask('{ allPersons { id } }');
    expect(data).toEqual({ allPersons: null });
    expect(errors).toMatchObject([{ path: ['allPersons'], extensions }]);
    const { message, extensions: facts } = errors![0]!;
    expect(message).toContain('None of them is in this answer.');
    if (failsBehind < Infinity) {
      expect(message).toContain('The index is rebuilding.');
      expect(message).toContain(`with \`limit: ${extensions.drained}\``);
    }
    const part = 'query ($n: Int, $after: String) { allPersons(limit: $n, after: $after) { id } }';
    const first = await gateway.ask<People>(part, { n: extensions.drained });
    readable = Infinity;
    const rest = await gateway.ask<People>(part, { n: 54, after: facts['resumeAfter'] });
    const returned = [...first.data.allPersons, ...rest.data.allPersons];
    expect(returned).toEqual(all.slice(0, extensions.drained + 54));
  },
);

describe('a list that was drained before', () => {
  test('is read with DRAIN_CONCURRENCY pages in flight, and returned as it is now', async () => {
    await using world = await startPersons(2_000);
    expect(await world.drain()).toEqual(world.ids());
    // The first page tells the page limit; the others leave room for an overlap with the next one.
    expect(world.load).toMatchObject({ most: 1, requests: 1 + Math.ceil((2_000 - 50) / 48) });
    world.load.most = 0;
    const { persons } = world.service;
    persons.insert(0, 60);
    persons.insert(700, 3);
    persons.remove(1_200, 55);
    persons.move(1_900, 10);
    expect(await world.drain()).toEqual(world.ids());
    expect(world.load.most).toBe(8);
  });
});

describe('a total and the ids that were not found are remembered', () => {
  const events: [string, (gateway: GatewayOverService) => Promise<unknown>][] = [
    ['a mutation', (gateway) => gateway.ask('mutation { touch { id } }')],
    [
      'another token set',
      async ({ service, store, ask }) => {
        const link = service.makeNewSet();
        const pair = readPair(await (await fetch(link)).json())!;
        const imported = { pair, service: service.url, by: 'test', replace: true };
        expect(await store.update(importPair(imported))).toBe('imported');
        // The gateway notices the other set when it sends its next request.
        await ask('{ persons(first: 1) { items { id } } }');
      },
    ],
  ];

  test.each(events)('until %s', async (_, happens) => {
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

test('a drain that starts after a mutation joins none from before it', async () => {
  await using gateway = await startTeams({ teams: 120 });
  const { service } = gateway;
  const gate = Promise.withResolvers<void>();
  service.answer(after(gate.promise, honest), honest, honest);
  const drain = () => gateway.ask<Teams>('{ allTeams { number } }');
  const before = drain();
  await service.arrived(1);
  await gateway.ask('mutation { addTeam { id } }');
  // It reads its own pages while the walk from before the mutation still waits for its first one.
  expect((await drain()).data.allTeams).toHaveLength(121);
  gate.resolve();
  await before;
});

test('lists below several mutations of one operation are read after the last mutation', async () => {
  await using gateway = await startTeams({ teams: 1, members: 8 });
  const add = 'addMember(team: "0") { membersConnection(first: 20) { nodes { id } } }';
  const { data } = await gateway.ask(`mutation { one: ${add} two: ${add} }`);
  const whole = { membersConnection: { nodes: { length: 10 } } };
  expect(data).toMatchObject({ one: whole, two: whole });
  expect(gateway.service.received[0]!.body).toContain('two: addMember');
});

/** A gateway over persons, and how many of its requests are answered at a time. */
async function startPersons(persons: number) {
  const gateway = await startGatewayOverService({ persons });
  const load = { now: 0, most: 0, requests: 0 };
  const counted: Reply = async (response, ...rest) => {
    load.now += 1;
    load.requests += 1;
    // A request also ends when the gateway aborts it.
    response.once('close', () => (load.now -= 1));
    // All other requests sent by now arrive before this one is answered, and aborted ones have ended.
    for (let turn = 0; turn < 10; turn += 1) await setImmediate();
    load.most = Math.max(load.most, load.now);
    await honest(response, ...rest);
  };
  gateway.service.answer(counted);
  return Object.assign(gateway, {
    load,
    counted,
    ids: () => gateway.service.persons.all().map(({ id }) => id),
    drain: async () => {
      const { data, errors } = await gateway.ask<People>('{ allPersons { id } }');
      expect(errors).toBeUndefined();
      return data.allPersons.map(({ id }) => id);
    },
  });
}
