// Imports the engine's insides, and goes when the engine is replaced.
import fc from 'fast-check';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import {
  after,
  honest,
  text,
  type FakeUpstreamOptions,
  type Reply,
} from '../support/imitations/scripted.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { readPair } from '../../src/tokens/pair.ts';
import { importPair } from '../../src/tokens/state.ts';
import { randomRuns } from '../support/random/random-runs.ts';
import { fullSdl, fullService } from '../support/imitations/honest.ts';

interface People {
  allPersons: { id: string }[];
}

describe('a list that was drained before', () => {
  test('a list that was drained before is read with DRAIN_CONCURRENCY pages in flight, and returned as it is now', async () => {
    await using world = await startWorld({ persons: 2_000 });
    const { gateway, load } = world;
    expect(await world.drain()).toEqual(world.ids());
    expect(load.most).toBe(1);
    load.most = 0;
    const { persons } = gateway.upstream.sandbox;
    persons.insert(0, 60);
    persons.insert(700, 3);
    persons.remove(1_200, 55);
    persons.move(1_900, 10);
    expect(await world.drain()).toEqual(world.ids());
    expect(load.most).toBe(8);
  });

  test.each(['keyset', 'record', 'position'] as const)(
    'a list that was drained before is returned exactly after any changes, over %s cursors, and costs little more than its pages',
    async (cursors) => {
      await using world = await startWorld({ persons: 1_000, cursors });
      const { persons } = world.gateway.upstream.sandbox;
      await world.drain();
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.nat(1_000), { minLength: 1, maxLength: 10 }),
          async (offsets) => {
            offsets.forEach((offset, index) => {
              const at = offset % persons.length;
              if (index % 2 === 0) persons.insert(at, 1 + (offset % 3));
              else persons.remove(at, Math.min(2, persons.length - at));
            });
            const before = world.load.requests;
            expect(await world.drain()).toEqual(world.ids());
            const pages = Math.ceil(persons.length / 49);
            expect(world.load.requests - before).toBeLessThanOrEqual(2.5 * pages);
          },
        ),
        { numRuns: randomRuns(12) },
      );
    },
  );

  test.each([
    [51, 2],
    [98, 2],
  ])('a list is read no further than a limit of %i records needs', async (limit, pages) => {
    await using world = await startWorld({ persons: 500 });
    // The first page of the first walk is as long as the limit that it learns from it.
    await world.drain();
    await world.drain();
    const { requests } = world.load;
    const { data } = await world.gateway.ask<People>(`{ allPersons(limit: ${limit}) { id } }`);
    expect(data.allPersons.map(({ id }) => id)).toEqual(world.ids().slice(0, limit));
    expect(world.load.requests - requests).toBe(pages);
  });

  test.each(['after', 'while'])(
    'a list is walked page by page again if another token set was imported %s it was drained',
    async (when) => {
      await using world = await startWorld({ persons: 500 });
      const { gateway, load } = world;
      await world.drain();
      const gate = Promise.withResolvers<void>();
      if (when === 'while') gateway.upstream.answer(after(gate.promise, world.counted));
      const draining = world.drain();
      if (when === 'after') await draining;
      else await gateway.upstream.arrived(11 + 8);
      await importAnotherSet(gateway);
      gateway.upstream.answer(world.counted);
      await gateway.ask('{ persons(first: 1) { items { id } } }');
      if (when === 'while') await gateway.ask('{ personsConnection(first: 1) { nodes { id } } }');
      gate.resolve();
      await draining;
      load.most = 0;
      expect(await world.drain()).toEqual(world.ids());
      expect(load.most).toBe(1);
    },
  );

  test('the page index of a list remains if a caller leaves that began before there was one', async () => {
    await using world = await startWorld({ persons: 500 });
    const { gateway, load } = world;
    const gate = Promise.withResolvers<void>();
    gateway.upstream.answer(honest, after(gate.promise, honest));
    const leaving = new AbortController();
    const left = gateway.ask('{ allPersons { firstName } }', {}, { signal: leaving.signal });
    await gateway.upstream.arrived(2);
    gateway.upstream.answer(world.counted);
    await world.drain();
    leaving.abort();
    await expect(left).rejects.toThrow(/left|abort/i);
    load.most = 0;
    expect(await world.drain()).toEqual(world.ids());
    expect(load.most).toBe(8);
  });

  test('a list has a page index for each combination of filters', async () => {
    const { schema } = fullService();
    await using world = await startWorld({ schema }, { snapshot: fullSdl });
    const { load } = world;
    const drain = async (open: boolean | null) => {
      load.most = 0;
      const query = 'query ($open: Boolean) { openingsConnection(open: $open) { totalCount } }';
      const { data } = await world.gateway.ask<{ openingsConnection: { totalCount: number } }>(
        query,
        { open },
      );
      return data.openingsConnection.totalCount;
    };
    expect(await drain(true)).toBe(11);
    expect(await drain(false)).toBe(12);
    expect(await drain(null)).toBe(23);
  });

  test('with INDEX_MAX_IDS=0 a list has no page index, so that every drain reads page by page', async () => {
    await using world = await startWorld({ persons: 500 }, { config: { indexMaxIds: 0 } });
    for (const _ of [1, 2]) {
      expect(await world.drain()).toEqual(world.ids());
      expect(world.load.most).toBe(1);
    }
  });
});

describe('an overloaded service', () => {
  test.each([429, 503])(
    'after a %i the service gets half as many requests at a time, and later as many as before',
    async (status) => {
      await using world = await startWorld({ persons: 2_000 });
      const { gateway, load } = world;
      await world.drain();
      const [retried, later] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const before = gateway.upstream.received.length;
      gateway.upstream.answer(async (...args) => {
        const number = gateway.upstream.received.length - before;
        if (number <= 8) return text('', status)(...args);
        await (number <= 16 ? retried : later).promise;
        return world.counted(...args);
      });
      const draining = world.drain();
      await gateway.upstream.arrived(before + 16);
      retried.resolve();
      await gateway.upstream.arrived(before + 20);
      for (let turn = 0; turn < 20; turn += 1) await setImmediate();
      expect(gateway.upstream.received).toHaveLength(before + 20);
      later.resolve();
      expect(await draining).toEqual(world.ids());

      await world.drain();
      load.most = 0;
      await world.drain();
      expect(load.most).toBe(8);
    },
  );

  test('while the service is down it gets few more requests than from a walk page by page', async () => {
    await using world = await startWorld({ persons: 20_000 });
    const { upstream, ask } = world.gateway;
    await world.drain();
    const before = upstream.received.length;
    let answered = 0;
    upstream.answer(async (...args) => {
      answered += 1;
      await (answered <= 20 ? honest : text('', 503))(...args);
    });
    const { data, errors } = await ask<People>('{ allPersons { id } }');
    expect(data.allPersons).toBeNull();
    expect(errors).toMatchObject([{ extensions: { code: 'DRAIN_INTERRUPTED' } }]);
    // The requests in flight, then the one that the consumer waits for; each is retried.
    expect(upstream.received.length - before - 20).toBeLessThan(60);
    upstream.answer(honest);
    expect(await world.drain()).toEqual(world.ids());
  });
});

async function importAnotherSet(gateway: GatewayOverFake): Promise<void> {
  const link = gateway.upstream.sandbox.makeNewSet();
  const pair = readPair(await (await fetch(link)).json())!;
  const imported = { pair, service: gateway.upstream.url, by: 'test', replace: true };
  expect(await gateway.store.update(importPair(imported))).toBe('imported');
}

async function startWorld(upstream: FakeUpstreamOptions, options: TestGatewayOptions = {}) {
  const gateway = await startGatewayOverFake(upstream, options);
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
  gateway.upstream.answer(counted);
  return {
    gateway,
    load,
    counted,
    ids: () => gateway.upstream.sandbox.persons.all().map(({ id }) => id),
    drain: async () => {
      const { data, errors } = await gateway.ask<People>('{ allPersons { id } }');
      expect(errors).toBeUndefined();
      return data.allPersons.map(({ id }) => id);
    },
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  } satisfies AsyncDisposable & { gateway: GatewayOverFake; [more: string]: unknown };
}
