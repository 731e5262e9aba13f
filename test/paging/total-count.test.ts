import { describe, expect, test } from 'vitest';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { altered, honest, type Reply } from '../support/imitations/scripted.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { ManualClock, MINUTE } from '../support/random/manual-clock.ts';
import { fullSdl, fullService } from '../support/imitations/honest.ts';

const TOTAL = '{ personsConnection { totalCount } }';

test.each([0, 1, 49, 50, 51, 137, 700])(
  'totalCount of %i persons is their number',
  async (persons) => {
    await using gateway = await startGatewayOverSandbox({ persons });
    expect(await totalOf(gateway)).toBe(persons);
  },
);

describe.each(['keyset', 'record', 'position'] as const)(
  'totalCount over %s cursors',
  (cursors) => {
    test('totalCount counts the whole list, whatever edges are selected', async () => {
      await using gateway = await startGatewayOverSandbox({ persons: 137, cursors });
      const { cursor } = (await edges(gateway))[60]!;
      for (const stretch of [
        'first: 0',
        'first: 7',
        'first: 500',
        'last: 3',
        `first: 2, after: "${cursor}"`,
        `last: 2, before: "${cursor}"`,
      ]) {
        const { data, errors } = await gateway.ask(
          `{ personsConnection(${stretch}) { nodes { id } totalCount } }`,
        );
        expect(errors).toBeUndefined();
        expect(data).toMatchObject({ personsConnection: { totalCount: 137 } });
      }
    });

    test('totalCount counts a changed list again', async () => {
      const { clock, later } = movableClock();
      await using gateway = await startGatewayOverSandbox({ persons: 137, cursors }, { clock });
      const { persons } = gateway.sandbox;
      for (const change of [
        () => persons.insert(20, 70),
        () => persons.remove(0, 55),
        () => persons.insert(persons.length, 1),
        () => persons.remove(10, persons.length - 10),
        () => persons.remove(0, 10),
        () => persons.insert(0, 51),
      ]) {
        await totalOf(gateway);
        change();
        later(10 * MINUTE);
        expect(await totalOf(gateway)).toBe(persons.length);
      }
    });
  },
);

describe('totalCount costs', () => {
  test('without a selection, or skipped, it costs nothing', async () => {
    await using gateway = await startGatewayOverSandbox({ persons: 137 });
    for (const selection of ['', 'totalCount @include(if: false)', 'totalCount @skip(if: true)']) {
      const requests = await requestsOf(gateway, () =>
        gateway.ask(`{ personsConnection(first: 5) { nodes { id } ${selection} } }`),
      );
      expect(requests).toBe(1);
    }
  });

  test('selected alone it costs a walk of the list and no other page', async () => {
    await using gateway = await startGatewayOverSandbox({ persons: 137 });
    expect(await requestsOf(gateway, () => totalOf(gateway))).toBe(3);
  });

  test('with edges it costs a walk and the page of the edges', async () => {
    await using gateway = await startGatewayOverSandbox({ persons: 137 });
    const requests = await requestsOf(gateway, () =>
      gateway.ask('{ personsConnection(first: 5) { nodes { id } totalCount } }'),
    );
    expect(requests).toBe(1 + 3);
  });

  test('in fragments and under aliases it costs one walk', async () => {
    await using gateway = await startGatewayOverSandbox({ persons: 137 });
    let answer: unknown;
    const requests = await requestsOf(gateway, async () => {
      answer = await gateway.ask(`{
        a: personsConnection { ...Total }
        b: personsConnection { how: totalCount many: totalCount }
        c: personsConnection(last: 4) { ... on PersonConnection { totalCount } }
      }
      fragment Total on PersonConnection { totalCount __typename }`);
    });
    expect(answer).toEqual({
      data: {
        a: { totalCount: 137, __typename: 'PersonConnection' },
        b: { how: 137, many: 137 },
        c: { totalCount: 137 },
      },
    });
    expect(requests).toBe(3);
  });
});

test('a total is counted again after a mutation', async () => {
  await using gateway = await startRich();
  const total = () => richTotal(gateway);
  expect(await total()).toBe(97);
  const counted = gateway.upstream.received.length;
  expect(await total()).toBe(97);
  expect(gateway.upstream.received).toHaveLength(counted);

  const { errors } = await gateway.ask('mutation { rename(id: 1, name: "Anna") { id } }');
  expect(errors).toBeUndefined();
  expect(await total()).toBe(97);
  expect(gateway.upstream.received.length).toBeGreaterThan(counted + 1);
});

test('a count in progress when a mutation is sent is not returned to later callers', async () => {
  await using gateway = await startRich();
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  const held: Reply = async (...exchange) => {
    if (exchange[1].body.includes('activeCandidates')) await opened;
    await honest(...exchange);
  };
  gateway.upstream.answer(held);
  const before = richTotal(gateway);
  await gateway.upstream.arrived(1);
  const mutated = gateway.ask('mutation { rename(id: 1, name: "Anna") { id } }');
  const { errors } = await mutated;
  expect(errors).toBeUndefined();
  const after = richTotal(gateway);
  await gateway.upstream.arrived(3);
  open();
  expect([await before, await after]).toEqual([97, 97]);
  const counts = gateway.upstream.received.filter(({ body }) => body.includes('activeCandidates'));
  expect(counts.filter(({ body }) => !/"_rs_after":"/.test(body))).toHaveLength(2);
});

test('one walk counts for many callers at once', async () => {
  await using gateway = await startGatewayOverSandbox({ persons: 137, latency: 20 });
  const requests = await requestsOf(gateway, async () => {
    const totals = await Promise.all(Array.from({ length: 30 }, () => totalOf(gateway)));
    expect(totals).toEqual(Array(30).fill(137));
  });
  expect(requests).toBe(3);
});

test('a caller who leaves does not end the count of others', async () => {
  await using gateway = await startGatewayOverFake({ persons: 137 });
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  gateway.upstream.answer(async (...exchange) => {
    await opened;
    await honest(...exchange);
  });
  const leaving = new AbortController();
  const left = gateway.ask(TOTAL, {}, { signal: leaving.signal });
  await gateway.upstream.arrived(1);
  const stays = totalOf(gateway);
  leaving.abort();
  await expect(left).rejects.toThrow(/abort/);
  open();
  expect(await stays).toBe(137);
});

describe('DRAIN_MAX_ITEMS', () => {
  test('the setting limits a count like any drain: the total is null with an error, and the edges stay', async () => {
    await using gateway = await startGatewayOverSandbox(
      { persons: 137 },
      { config: { drainMaxItems: 100 } },
    );
    const { data, errors } = await gateway.ask(
      '{ personsConnection(first: 2) { nodes { id } totalCount } }',
    );
    const nodes = gateway.sandbox.persons.slice(0, 2).map(({ id }) => ({ id }));
    expect(data).toEqual({ personsConnection: { nodes, totalCount: null } });
    expect(errors).toMatchObject([
      {
        path: ['personsConnection', 'totalCount'],
        extensions: { code: 'DRAIN_LIMIT_EXCEEDED', max: 100, drained: 100 },
      },
    ]);
  });

  test('a list of exactly that length is counted', async () => {
    await using gateway = await startGatewayOverSandbox(
      { persons: 100 },
      { config: { drainMaxItems: 100 } },
    );
    expect(await totalOf(gateway)).toBe(100);
  });

  test('other drains of the operation count too', async () => {
    await using gateway = await startGatewayOverSandbox(
      { persons: 60 },
      { config: { drainMaxItems: 100 } },
    );
    const { errors } = await gateway.ask(
      '{ allPersons { id } personsConnection { nodes { id } totalCount } }',
    );
    // Either of the two may be refused.
    const codes = new Set(errors?.map(({ extensions }) => extensions?.['code']));
    expect([...codes]).toEqual(['DRAIN_LIMIT_EXCEEDED']);
  });

  test('a refused count leaves no total, so the next one is refused too', async () => {
    await using gateway = await startGatewayOverSandbox(
      { persons: 137 },
      { config: { drainMaxItems: 100 } },
    );
    for (let round = 0; round < 2; round += 1) {
      const { data, errors } = await gateway.ask(TOTAL);
      expect(data).not.toMatchObject({ personsConnection: { totalCount: expect.any(Number) } });
      expect(errors).toMatchObject([{ extensions: { code: 'DRAIN_LIMIT_EXCEEDED' } }]);
    }
  });
});

test('a count that fails half-way leaves no total, and the next one is right', async () => {
  await using gateway = await startGatewayOverFake({ persons: 137 });
  const stalled = altered(({ data }) => {
    for (const page of Object.values(data)) page.pageInfo['endCursor'] = null;
  });
  gateway.upstream.answer(honest, stalled, honest);
  const { data, errors } = await gateway.ask(
    '{ personsConnection(first: 0) { totalCount pageInfo { hasNextPage } } }',
  );
  expect(data).toMatchObject({ personsConnection: { totalCount: null } });
  expect(errors).toMatchObject([
    { path: ['personsConnection', 'totalCount'], extensions: { code: 'DRAIN_STALLED' } },
  ]);
  expect(await totalOf(gateway)).toBe(137);
});

async function totalOf(gateway: TestGateway): Promise<number> {
  const { data, errors } = await gateway.ask<{ personsConnection: { totalCount: number } }>(TOTAL);
  expect(errors).toBeUndefined();
  return data.personsConnection.totalCount;
}

async function edges(gateway: TestGateway): Promise<{ cursor: string }[]> {
  const { data } = await gateway.ask<{ personsConnection: { edges: { cursor: string }[] } }>(
    '{ personsConnection(first: 500) { edges { cursor } } }',
  );
  return data.personsConnection.edges;
}

async function requestsOf(
  gateway: Awaited<ReturnType<typeof startGatewayOverSandbox>>,
  action: () => Promise<unknown>,
): Promise<number> {
  const before = gateway.sandbox.stats.requests.graphql;
  await action();
  return gateway.sandbox.stats.requests.graphql - before;
}

function startRich() {
  const { schema } = fullService();
  return startGatewayOverFake({ schema }, { snapshot: fullSdl, config: { mutations: 'all' } });
}

async function richTotal(gateway: TestGateway): Promise<number> {
  const { data, errors } = await gateway.ask<{
    activeCandidatesConnection: { totalCount: number };
  }>('{ activeCandidatesConnection { totalCount } }');
  expect(errors).toBeUndefined();
  return data.activeCandidatesConnection.totalCount;
}

/** Advances by itself only while something sleeps. */
function movableClock() {
  const clock = new ManualClock();
  return { clock, later: (ms: number) => clock.jump(ms) };
}
