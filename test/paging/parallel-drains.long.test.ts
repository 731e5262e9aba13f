import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import type { ServiceOptions, Reply } from '../service/service.ts';
import { honest, text } from '../service/replies.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { idOf } from '../../sandbox/person-list.ts';
import { readPair } from '../../src/tokens/pair.ts';
import { importPair } from '../../src/tokens/state.ts';

interface People {
  allPersons: { id: string }[];
}

describe('a list that was drained before', () => {
  test('is read with DRAIN_CONCURRENCY pages in flight, and returned as it is now', async () => {
    await using world = await startWorld({ persons: 2_000 });
    const { gateway, load } = world;
    expect(await world.drain()).toEqual(world.ids());
    expect(load.most).toBe(1);
    load.most = 0;
    const { persons } = gateway.service;
    persons.insert(0, 60);
    persons.insert(700, 3);
    persons.remove(1_200, 55);
    persons.move(1_900, 10);
    expect(await world.drain()).toEqual(world.ids());
    expect(load.most).toBe(8);
  });

  test('is another one with another token set: no total and no unknown id is remembered', async () => {
    await using world = await startWorld({ persons: 120 });
    const { gateway } = world;
    const added = idOf(120);
    const query = `{ person(id: "${added}") { id } personsConnection { totalCount } }`;
    const ask = async () => (await gateway.ask(query)).data;
    expect(await ask()).toEqual({ person: null, personsConnection: { totalCount: 120 } });
    gateway.service.persons.insert(60);
    expect(await ask()).toEqual({ person: null, personsConnection: { totalCount: 120 } });
    await importAnotherSet(gateway);
    // The gateway notices the other set when it sends its next request.
    await gateway.ask('{ persons(first: 1) { items { id } } }');
    expect(await ask()).toEqual({
      person: { id: added },
      personsConnection: { totalCount: 121 },
    });
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
      const before = gateway.service.received.length;
      gateway.service.answer(async (...args) => {
        const number = gateway.service.received.length - before;
        if (number <= 8) return text('', status)(...args);
        await (number <= 16 ? retried : later).promise;
        return world.counted(...args);
      });
      const draining = world.drain();
      await gateway.service.arrived(before + 16);
      retried.resolve();
      await gateway.service.arrived(before + 20);
      for (let turn = 0; turn < 20; turn += 1) await setImmediate();
      expect(gateway.service.received).toHaveLength(before + 20);
      later.resolve();
      expect(await draining).toEqual(world.ids());

      await world.drain();
      load.most = 0;
      await world.drain();
      expect(load.most).toBe(8);
    },
  );
});

async function importAnotherSet(gateway: GatewayOverService): Promise<void> {
  const link = gateway.service.makeNewSet();
  const pair = readPair(await (await fetch(link)).json())!;
  const imported = { pair, service: gateway.service.url, by: 'test', replace: true };
  expect(await gateway.store.update(importPair(imported))).toBe('imported');
}

async function startWorld(upstream: ServiceOptions, options: TestGatewayOptions = {}) {
  const gateway = await startGatewayOverService(upstream, options);
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
  return {
    gateway,
    load,
    counted,
    ids: () => gateway.service.persons.all().map(({ id }) => id),
    drain: async () => {
      const { data, errors } = await gateway.ask<People>('{ allPersons { id } }');
      expect(errors).toBeUndefined();
      return data.allPersons.map(({ id }) => id);
    },
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  } satisfies AsyncDisposable & { gateway: GatewayOverService; [more: string]: unknown };
}
