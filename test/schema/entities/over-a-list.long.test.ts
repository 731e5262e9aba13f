import { describe, expect, test } from 'vitest';
import { idOf } from '../../../sandbox/person-list.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../../support/gateway/over-fake.ts';
import {
  after,
  honest,
  json,
  type FakeUpstreamOptions,
  type Reply,
} from '../../support/imitations/scripted.ts';
import type { TestGatewayOptions } from '../../support/gateway/gateway.ts';
import { ManualClock } from '../../support/random/manual-clock.ts';

/** How long a record that was not found is not looked for again. */
const WALK_AGAIN_AFTER_MS = 30_000;

const ENTITIES = `query ($representations: [_Any!]!) {
  _entities(representations: $representations) { __typename ... on Person { id firstName } }
}`;
const DRAIN = '{ allPersons { id } }';
const WALKED = 100;

type Entities = { _entities: ({ id: string; firstName: string } | null)[] };

describe('with a page index', () => {
  test('1,000 representations in 100 pages cost 100 requests, in flight at the same time', async () => {
    await using world = await startWorld({ persons: 4_800 });
    await world.gateway.ask(DRAIN);
    // The first page has 50 records, and the others have 48.
    const positions = Array.from(
      { length: 1_000 },
      (_, at) => Math.floor(at / 10) * 48 + 2 + (at % 10),
    );
    world.reset();
    world.holdUntil(8);
    const { data, errors } = await world.entities(positions.map(idOf));
    expect(errors).toBeUndefined();
    expect(data._entities).toEqual(world.persons(positions));
    expect(world.requests()).toHaveLength(100);
    expect(world.most()).toBe(8);
  });

  test('one representation costs one request', async () => {
    await using world = await startWorld({ persons: 200 });
    await world.gateway.ask(DRAIN);
    world.reset();
    const { data } = await world.entities([idOf(52)]);
    expect(data._entities).toEqual(world.persons([52]));
    expect(world.requests()).toHaveLength(1);
    const single = await world.gateway.ask('{ person(id: "' + idOf(52) + '") { firstName } }');
    expect(single).toEqual({ data: { person: { firstName: world.persons([52])[0]!.firstName } } });
    expect(world.requests()).toHaveLength(2);
  });

  test('records keep the order of their representations, a repeated id is fetched once, and an unknown id is null', async () => {
    await using world = await startWorld({ persons: 200 });
    await world.gateway.ask(DRAIN);
    world.reset();
    const { data, errors } = await world.entities([idOf(9), idOf(3), 'nobody', idOf(9)]);
    expect(errors).toBeUndefined();
    const [nine, three] = world.persons([9, 3]);
    expect(data._entities).toEqual([nine, three, null, nine]);
    // Their page, and for the unknown one the end of the list.
    const read = world.requests().filter(({ query }) => query.includes('firstName'));
    expect(read.map(({ variables }) => typeof variables['_rs_after'])).toEqual([
      'undefined',
      'string',
    ]);
  });

  test('fields of one operation that request the same of one page share its request', async () => {
    await using world = await startWorld({ persons: 200 });
    await world.gateway.ask(DRAIN);
    world.reset();
    const { data } = await world.gateway.ask(
      `{ a: person(id: "${idOf(1)}") { firstName } b: person(id: "${idOf(2)}") { firstName } }`,
    );
    const [a, b] = world.persons([1, 2]).map(({ firstName }) => ({ firstName }));
    expect(data).toEqual({ a, b });
    expect(world.requests()).toHaveLength(1);
  });

  test.each(['keyset', 'record', 'position'] as const)(
    'a record that moved to the next or the previous page is found there: %s cursors',
    async (cursors) => {
      await using world = await startWorld({ persons: 480, cursors });
      const { persons } = world.gateway.upstream.sandbox;
      await world.gateway.ask(DRAIN);
      persons.insert(0, 20);
      const ids = [40, 47, 95, 240, 479].map(idOf);
      expect((await world.entities(ids)).data._entities.map((each) => each?.id)).toEqual(ids);
      persons.remove(0, 40);
      const left = [40, 47, 95, 240, 479].map(idOf);
      expect((await world.entities(left)).data._entities.map((each) => each?.id)).toEqual(left);
      // A removed record is null.
      expect((await world.entities([idOf(3)])).data._entities).toEqual([null]);
    },
  );

  test('a record inserted at an end of the list is found without a walk', async () => {
    await using world = await startWorld({ persons: 480 });
    const { persons } = world.gateway.upstream.sandbox;
    await world.gateway.ask(DRAIN);
    persons.insert(0, 1);
    persons.insert(481, 1);
    world.reset();
    const { data } = await world.entities([idOf(480), idOf(481)]);
    expect(data._entities.map((each) => each?.id)).toEqual([idOf(480), idOf(481)]);
    expect(world.requests().length).toBeLessThanOrEqual(4);
  });

  test('a record pushed off the last page is found after it, even right after a walk', async () => {
    await using world = await startWorld({ persons: 50 });
    await world.entities(['unknown']);
    world.gateway.upstream.sandbox.persons.insert(0, 1);
    const { data } = await world.entities([idOf(49)]);
    expect(data._entities).toEqual(world.persons([49]));
  });

  test.each(['keyset', 'record', 'position'] as const)(
    'a record that a few others pushed off its page is found, even right after a walk: %s cursors',
    async (cursors) => {
      await using world = await startWorld({ persons: 480, cursors });
      await world.entities(['unknown']);
      world.gateway.upstream.sandbox.persons.insert(0, 5);
      const places = Array.from({ length: 480 }, (_, at) => at);
      const { data, errors } = await world.entities(places.map(idOf));
      expect(errors).toBeUndefined();
      expect(places.filter((at) => data._entities[at]?.id !== idOf(at))).toEqual([]);
    },
  );

  test('values are fresh', async () => {
    await using world = await startWorld({ persons: 100 });
    await world.gateway.ask(DRAIN);
    world.gateway.upstream.answer(async (response, received, sandbox) => {
      const { body } = received;
      await honest(
        response,
        { ...received, body: body.replace('firstName', 'firstName: id') },
        sandbox,
      );
    });
    const { data } = await world.entities([idOf(7)]);
    expect(data._entities).toEqual([{ __typename: 'Person', id: idOf(7), firstName: idOf(7) }]);
  });
});

describe('without a page index', () => {
  test('all requests share one walk, and each is answered as soon as its record is read', async () => {
    await using world = await startWorld({ persons: 2_500 });
    const positions = Array.from({ length: 40 }, (_, at) => at * 60);
    const answers = await Promise.all(
      positions.map((at) =>
        world.gateway.ask(`{ person(id: "${idOf(at)}") { id firstName __typename } }`),
      ),
    );
    expect(answers.map(({ data }) => data)).toEqual(
      world.persons(positions).map((person) => ({ person })),
    );
    const walked = world.requests().filter(({ query }) => !query.includes('firstName'));
    expect(walked.length).toBeLessThanOrEqual(Math.ceil(2_500 / 48) + 1);
    expect(new Set(walked.map(({ variables }) => variables['_rs_after'])).size).toBe(walked.length);
  });

  test('a walk goes no further than a request needs, and continues from there', async () => {
    await using world = await startWorld({ persons: 2_400 });
    await world.entities([idOf(60)]);
    const first = world.requests().length;
    expect(first).toBeLessThanOrEqual(5);
    await world.entities([idOf(150)]);
    expect(world.requests().length).toBeLessThanOrEqual(first + 5);
    // The walk has already passed this record.
    world.reset();
    await world.entities([idOf(20)]);
    expect(world.requests()).toHaveLength(1);
  });

  test('the parts of a walk leave one page index, as a whole walk does', async () => {
    const clock = new ManualClock();
    await using world = await startWorld({ persons: 480 }, { clock });
    for (const id of [idOf(60), idOf(250), 'unknown']) await world.entities([id]);
    clock.jump(WALK_AGAIN_AFTER_MS);
    world.reset();
    const { data } = await world.entities([30, 130, 330, 479].map(idOf));
    expect(data._entities).toEqual(world.persons([30, 130, 330, 479]));
    expect(world.requests()).toHaveLength(4);
    world.reset();
    await world.gateway.ask(DRAIN);
    expect(world.requests().length).toBeLessThanOrEqual(Math.ceil(480 / 48) + 1);
  });

  test('a caller that leaves ends only its own lookup, and the walk continues for the next', async () => {
    await using world = await startWorld({ persons: 500 });
    const { upstream, ask } = world.gateway;
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    upstream.answer(after(gate, honest));
    const leaving = new AbortController();
    const left = ask(`{ person(id: "${idOf(400)}") { id } }`, {}, { signal: leaving.signal });
    left.catch(() => {});
    await upstream.arrived(1);
    leaving.abort();
    expect(await upstream.received[0]!.over).toBe('cut');
    open();
    expect((await world.entities([idOf(400)])).data._entities).toEqual(world.persons([400]));
    const walked = world.requests().filter(({ query }) => !query.includes('firstName'));
    // Only the aborted page was requested twice.
    const pages = walked.map(({ variables }) => variables['_rs_after']);
    expect(pages.length - new Set(pages).size).toBe(1);
  });

  test('any number of unknown ids cost one walk in half a minute', async () => {
    const clock = new ManualClock();
    await using world = await startWorld({ persons: 480 }, { clock });
    for (let round = 0; round < 5; round += 1) {
      const ids = Array.from({ length: 20 }, (_, at) => `unknown-${round}-${at}`);
      expect((await world.entities(ids)).data._entities).toEqual(ids.map(() => null));
    }
    // Both ends of the list are read each time.
    expect(world.requests().length).toBeLessThanOrEqual(WALKED / 10 + 1 + 4 * 2);
    world.reset();
    clock.jump(WALK_AGAIN_AFTER_MS);
    await world.entities(['unknown']);
    expect(world.requests().length).toBeGreaterThanOrEqual(10);
  });
});

test('a record inserted in the middle is found after half a minute', async () => {
  const clock = new ManualClock();
  await using world = await startWorld({ persons: 480 }, { clock });
  const { persons } = world.gateway.upstream.sandbox;
  await world.entities(['unknown']);
  persons.insert(240, 1);
  expect((await world.entities([idOf(480)])).data._entities).toEqual([null]);
  clock.jump(WALK_AGAIN_AFTER_MS);
  expect((await world.entities([idOf(480)])).data._entities).toMatchObject([{ id: idOf(480) }]);
});

describe('when the service fails', () => {
  test('each representation has the error', async () => {
    await using world = await startWorld({ persons: 2_400 });
    await world.gateway.ask(DRAIN);
    world.reset();
    world.gateway.upstream.answer(json({}, 503));
    const ids = Array.from({ length: 50 }, (_, at) => idOf(at * 48));
    const { data, errors } = await world.entities(ids);
    expect(data._entities).toEqual(ids.map(() => null));
    expect(errors).toHaveLength(50);
    expect(errors).toContainEqual(
      expect.objectContaining({
        path: ['_entities', 31],
        extensions: { code: 'UPSTREAM_BAD_RESPONSE' },
      }),
    );
  });

  test('a failed walk is reported to all waiting requests, and the next request starts another', async () => {
    await using world = await startWorld({ persons: 480 });
    world.gateway.upstream.answer(json({}, 503));
    const { errors } = await world.entities([idOf(1)]);
    expect(errors).toMatchObject([{ path: ['_entities', 0] }]);
    world.gateway.upstream.answer(honest);
    expect((await world.entities([idOf(1)])).data._entities).toEqual(world.persons([1]));
  });
});

test('a list that is too long to be walked is reported, and no record is reported as not existing', async () => {
  await using world = await startWorld({ persons: 480 }, { config: { drainMaxItems: 100 } });
  for (let round = 0; round < 2; round += 1) {
    const { data, errors } = await world.entities([idOf(10), idOf(400)]);
    expect(data._entities).toEqual([world.persons([10])[0], null]);
    expect(errors).toMatchObject([
      { path: ['_entities', 1], extensions: { code: 'DRAIN_LIMIT_EXCEEDED', max: 100 } },
    ]);
  }
});

test('without room for an index, the walk of this half minute says where records are', async () => {
  const clock = new ManualClock();
  await using world = await startWorld({ persons: 480 }, { clock, config: { indexMaxIds: 0 } });
  expect((await world.entities([idOf(400)])).data._entities).toEqual(world.persons([400]));
  expect((await world.entities(['unknown'])).data._entities).toEqual([null]);
  world.reset();
  expect((await world.entities([idOf(399)])).data._entities).toEqual(world.persons([399]));
  expect(world.requests()).toHaveLength(1);
  clock.jump(WALK_AGAIN_AFTER_MS);
  expect((await world.entities([idOf(400)])).data._entities).toEqual(world.persons([400]));
});

interface SentQuery {
  readonly query: string;
  readonly variables: Record<string, unknown>;
}

async function startWorld(options: FakeUpstreamOptions, gatewayOptions?: TestGatewayOptions) {
  const gateway: GatewayOverFake = await startGatewayOverFake(options, gatewayOptions);
  const { upstream } = gateway;
  let counted = 0;
  let inFlight = 0;
  let most = 0;
  const counting: Reply = async (...exchange) => {
    inFlight += 1;
    most = Math.max(most, inFlight);
    try {
      await honest(...exchange);
    } finally {
      inFlight -= 1;
    }
  };
  return {
    gateway,
    entities: (ids: readonly string[]) =>
      gateway.ask<Entities>(ENTITIES, {
        representations: ids.map((id) => ({ __typename: 'Person', id })),
      }),
    /** The requests since the last reset. */
    requests: () =>
      upstream.received.slice(counted).map(({ body }) => JSON.parse(body) as SentQuery),
    /** Answers nothing before this number of further requests has arrived, and then counts the requests in flight. */
    holdUntil: (count: number) => {
      const gate = upstream.arrived(upstream.received.length + count);
      upstream.answer((...exchange) => gate.then(() => counting(...exchange)));
    },
    most: () => most,
    reset: () => {
      counted = upstream.received.length;
    },
    persons: (places: readonly number[]) => {
      const all = new Map(upstream.sandbox.persons.all().map((each) => [each.id, each]));
      return places.map((at) => ({ __typename: 'Person', ...all.get(idOf(at))! }));
    },
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}
