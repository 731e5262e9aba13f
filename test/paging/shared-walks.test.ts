// Imports the engine's insides, and goes when the engine is replaced.
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { freePages } from '../support/gateway/free-pages.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import { type Received, type Reply, honest } from '../support/imitations/scripted.ts';
import { createSharedWalks, SharedWalk } from '../../src/paging/shared-walk.ts';
import { WALK_LEFT } from '../../src/paging/failures.ts';
import { PageRecords } from '../../src/paging/page.ts';
import type { WalkedPage } from '../../src/paging/walk.ts';
import { systemClock } from '../../src/clock.ts';
import { createWalkSlots } from '../../src/paging/walk-slots.ts';
import { fullSdl, fullService } from '../support/imitations/honest.ts';

interface People {
  allPersons: { id: string }[];
}

describe('identical drains at the same time', () => {
  test('50 of them cost one walk', async () => {
    await using gateway = await startGatewayOverFake({ persons: 137 });
    const drains = holdDrains(gateway);
    const answers = startMany(gateway, 50);
    await gateway.upstream.arrived(50 + 1);
    drains.open();
    const ids = gateway.upstream.sandbox.persons.all().map(({ id }) => id);
    for (const { data } of await Promise.all(answers)) {
      expect(data.allPersons.map(({ id }) => id)).toEqual(ids);
    }
    expect(drains.seen()).toHaveLength(3);
  });

  test('all others get everything if the first caller leaves', async () => {
    await using gateway = await startGatewayOverFake({ persons: 137 });
    const drains = holdDrains(gateway);
    const leaving = new AbortController();
    const [first] = startMany(gateway, 1, { signal: leaving.signal });
    await gateway.upstream.arrived(2);
    const others = startMany(gateway, 5, {}, 2);
    await gateway.upstream.arrived(7);
    leaving.abort();
    await expect(first).rejects.toThrow(/left|abort/i);
    drains.open();
    for (const { data } of await Promise.all(others)) expect(data.allPersons).toHaveLength(137);
    expect(drains.seen()).toHaveLength(3);
  });

  test('the walk and its request in flight end when the last caller leaves', async () => {
    await using gateway = await startGatewayOverFake({ persons: 500 });
    const drains = holdDrains(gateway);
    const leaving = new AbortController();
    const callers = startMany(gateway, 3, { signal: leaving.signal });
    await gateway.upstream.arrived(4);
    leaving.abort();
    await Promise.allSettled(callers);
    expect(await drains.seen()[0]!.over).toBe('cut');
    const { data } = await gateway.ask<People>('{ allPersons(limit: 1) { id } }');
    expect(data.allPersons).toHaveLength(1);
    expect(drains.seen()).toHaveLength(1);
  });

  test('drains before and after a mutation do not share a walk', async () => {
    const { schema } = fullService();
    await using gateway = await startGatewayOverFake(
      { schema },
      { snapshot: fullSdl, config: { mutations: 'all' } },
    );
    const drains = holdDrains(gateway, 'activeCandidates');
    const drain = () =>
      gateway.ask<{ allActiveCandidates: unknown[] }>('{ allActiveCandidates { name } }');
    const before = drain();
    await gateway.upstream.arrived(1);
    await gateway.ask('mutation { rename(id: 1, name: "Anna") { id } }');
    const after = drain();
    await gateway.upstream.arrived(3);
    drains.open();
    expect((await before).data.allActiveCandidates).toHaveLength(97);
    expect((await after).data.allActiveCandidates[0]).toEqual({ name: 'Anna' });
    expect(drains.seen()).toHaveLength(2);
  });
});

test.each([false, true])(
  'a slow reader delays no other, gets every record, and makes the walk keep few pages (a fast reader that keeps all: %s)',
  async (fastKeepsAll) => {
    const walks = createSharedWalks();
    let pulled = 0;
    let walksBegun = 0;
    const begin = async function* (position: { identity: string | null } | null) {
      walksBegun += 1;
      const first = position ? Number(position.identity) + 1 : 0;
      for (let number = first; number < 100; number += 1) {
        pulled += 1;
        yield page(number);
      }
    };
    const join = (keepsAll: boolean) => {
      const { signal } = new AbortController();
      return walks.join('letters', begin, { signal, keepsAll, budget: freePages() });
    };
    const [slow, fast] = [join(false), join(fastKeepsAll)];
    expect((await slow.next()).value?.after).toBe('0');
    const read: unknown[] = [];
    for await (const { records } of fast) read.push(...records);
    expect(read).toHaveLength(100);
    expect(pulled).toBe(100);
    const rest: string[] = [];
    for await (const { records } of slow)
      rest.push(...records.list.map(({ identity }) => identity));
    expect(rest).toEqual(Array.from({ length: 99 }, (_, index) => String(index + 1)));
    expect(walksBegun).toBe(2);
  },
);

test('readers may join a walk at its current page, and its requests end with the last of them', async () => {
  const requests: { signal: AbortSignal; answer: () => void }[] = [];
  const ends: unknown[] = [];
  const walk = new SharedWalk<Numbered>({
    begin: async function* (_position, { signal }) {
      for (let number = 0; ; number += 1) {
        const { promise, resolve, reject } = Promise.withResolvers<void>();
        signal.addEventListener('abort', () => reject(signal.reason as Error));
        requests.push({ signal, answer: resolve });
        await promise;
        yield page(number);
      }
    },
    joinAt: 'current',
    onEnd: (failure) => ends.push(failure?.error),
  });
  const join = ({ signal } = new AbortController()) => walk.read({ budget: freePages(), signal });

  const first = join();
  const firstPage = first.next();
  requests[0]!.answer();
  expect(await firstPage).toMatchObject({ value: { after: '0' } });
  const leaving = new AbortController();
  const second = join(leaving).next();
  await first.return();
  await setImmediate();
  expect(requests.map(({ signal }) => signal.aborted)).toEqual([false, false]);
  requests[1]!.answer();
  expect(await second).toMatchObject({ value: { after: '1' } });
  leaving.abort();
  expect(requests[1]!.signal.aborted).toBe(true);
  expect(ends).toEqual([WALK_LEFT]);
});

describe('MAX_DRAINS', () => {
  test('the setting limits the walks at a time; the others wait, and all get everything', async () => {
    await using gateway = await startGatewayOverFake(
      { persons: 300 },
      { config: { maxDrains: 2 } },
    );
    const drains = holdDrains(gateway);
    const selections = ['id', 'firstName', 'id firstName', 'a: id'];
    const answers = selections.map((fields) => gateway.ask<People>(`{ allPersons { ${fields} } }`));
    await gateway.upstream.arrived(2);
    for (let turn = 0; turn < 20; turn += 1) await setImmediate();
    expect(drains.seen()).toHaveLength(2);
    drains.open();
    for (const { data } of await Promise.all(answers)) expect(data.allPersons).toHaveLength(300);
  });

  test('callers take turns: a caller with many drains does not make others wait for all of them', async () => {
    const slots = createWalkSlots(1, systemClock);
    const { signal } = new AbortController();
    const served: string[] = [];
    const take = (owner: string) => slots.take({ owner, operation: {}, signal });
    const first = await take('greedy');
    const waiting = [...Array.from({ length: 10 }, () => 'greedy'), 'modest'].map(async (owner) => {
      const slot = await take(owner);
      served.push(owner);
      slot.giveBack();
    });
    first.giveBack();
    await Promise.all(waiting);
    expect(served.indexOf('modest')).toBeLessThanOrEqual(1);
    expect(slots).toMatchObject({ taken: 0, waiting: 0 });
  });

  test('a walk whose caller does not read on gives its slot to others, and resumes later', async () => {
    const slots = createWalkSlots(1, systemClock);
    const { signal } = new AbortController();
    const slow = await slots.take({ ...anybody(), signal });
    const other = slots.take({ ...anybody(), signal });
    slow.giveBack();
    const slot = await other;
    const order: string[] = [];
    const resuming = Promise.resolve(slow.resume()).then(() => order.push('resumed'));
    await setImmediate();
    expect(order).toEqual([]);
    slot.giveBack();
    await resuming;
    slow.giveBack();
    expect(slots).toMatchObject({ taken: 0, waiting: 0 });
  });

  test('a walk that left while it waited gets no slot', async () => {
    const slots = createWalkSlots(1, systemClock);
    const leaving = new AbortController();
    const { signal } = new AbortController();
    const first = await slots.take({ ...anybody(), signal });
    const left = slots.take({ ...anybody(), signal: leaving.signal });
    const next = slots.take({ ...anybody(), signal });
    leaving.abort();
    await expect(left).rejects.toThrow(/left|abort/i);
    first.giveBack();
    (await next).giveBack();
    expect(slots).toMatchObject({ taken: 0, waiting: 0 });
  });
});

/** Another operation of another caller each time. */
function anybody() {
  return { owner: {}, operation: {} };
}

/** Each also requests a page of its own, whose arrival shows that its drain has begun too. */
function startMany(gateway: GatewayOverFake, count: number, init: RequestInit = {}, from = 1) {
  return Array.from({ length: count }, (_, index) =>
    gateway.ask<People>(
      'query ($mine: Int) { allPersons { id } persons(first: $mine) { items { id } } }',
      { mine: from + index },
      init,
    ),
  );
}

/** Holds back the pages of drains until they are released; answers everything else. */
function holdDrains({ upstream }: GatewayOverFake, field = 'persons') {
  const gate = Promise.withResolvers<void>();
  const isDrain = ({ body }: Received) => body.includes(`${field}(first: $_rs_first`);
  const reply: Reply = async (response, received, sandbox) => {
    if (isDrain(received) && !received.body.includes('"_rs_first":1}')) await gate.promise;
    if (!response.destroyed) await honest(response, received, sandbox);
  };
  upstream.answer(reply);
  return {
    open: () => gate.resolve(),
    seen: () =>
      upstream.received.filter(
        (request) => isDrain(request) && !request.body.includes('"_rs_first":1}'),
      ),
  };
}

interface Numbered {
  readonly identity: string;
  readonly index: number;
}

function page(number: number): WalkedPage<Numbered> {
  const items = [{ identity: String(number), index: 0 }];
  return {
    records: new PageRecords({ items, hasNextPage: true, endCursor: null }, 0, 1),
    after: String(number),
    endCursor: String(number + 1),
    size: 1,
    hasNextPage: number < 99,
  };
}
