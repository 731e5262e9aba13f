import { describe, expect, test } from 'vitest';
import { idOf } from '../../../sandbox/person-list.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../../support/gateway/over-fake.ts';
import {
  honest,
  json,
  type FakeUpstreamOptions,
  type Reply,
} from '../../support/imitations/scripted.ts';
import type { TestGatewayOptions } from '../../support/gateway/gateway.ts';

const ENTITIES = `query ($representations: [_Any!]!) {
  _entities(representations: $representations) { __typename ... on Person { id firstName } }
}`;
const DRAIN = '{ allPersons { id } }';

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
