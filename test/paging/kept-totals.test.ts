import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Service } from '../service/service.ts';
import type { TestGateway, TestGatewayOptions } from '../support/gateway/gateway.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import type { Reply } from '../service/service.ts';
import { after, honest, json } from '../support/imitations/scripted.ts';
import { ManualClock, MINUTE, SECOND } from '../support/random/manual-clock.ts';
import { randomRuns } from '../support/random/random-runs.ts';

const TOTAL = '{ personsConnection { totalCount } }';

describe('a total is renewed by', () => {
  test.each([
    ['a drain', '{ allPersons { id } }'],
    ['a stream', '{ allPersons @stream { id } }'],
    ['reading from the end', '{ personsConnection(last: 1) { nodes { id } } }'],
    ['looking for an unknown id', '{ person(id: "unknown") { id } }'],
  ])('%s', async (_, query) => {
    await using world = await startKept();
    const response = await world.fetch('/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'multipart/mixed, application/json' },
      body: JSON.stringify({ query }),
    });
    await response.text();
    expect(await requestsOf(world, () => totalOf(world))).toBe(0);
    expect(await totalOf(world)).toBe(137);
  });

  test('no part of the list', async () => {
    await using world = await startKept();
    await world.ask(
      '{ allPersons(limit: 130) { id } personsConnection(first: 120) { nodes { id } } }',
    );
    expect(await totalOf(world)).toBe(137);
  });
});

test('each page of a table with a total is one request, however often it is asked for', async () => {
  await using world = await startKept({}, 2_000);
  const table = '{ personsConnection(first: 20) { totalCount edges { node { id } } } }';
  const page = async () => expect((await world.ask(table)).errors).toBeUndefined();
  expect(await requestsOf(world, page)).toBeGreaterThan(40);
  for (let time = 0; time < 20; time += 1) {
    world.clock.jump(6 * SECOND);
    expect(await requestsOf(world, page)).toBe(1);
  }
});

test('a count in the background is charged to no caller, and needs no scope of theirs', async () => {
  await using world = await startKept({ pagesPerMinute: 5 });
  const page = '{ personsConnection(first: 1) { totalCount nodes { id } } }';
  expect((await world.ask(page)).errors).toBeUndefined();
  world.clock.jump(5 * MINUTE);
  // One page each, of the five that are left: the walk of three pages takes none of them.
  for (let request = 0; request < 5; request += 1) {
    expect((await world.ask(page)).errors).toBeUndefined();
  }
  await settled(world);
  expect((await world.ask(page)).errors).toMatchObject([{ extensions: { code: 'RATE_LIMITED' } }]);
});

test('a count in the background lets a drain that waits for a slot begin first', async () => {
  await using world = await startKept({ maxDrains: 1 }, 1_000);
  await totalOf(world);
  world.clock.jump(5 * MINUTE);
  const first = world.hold();
  await totalOf(world);
  const before = world.upstream.received.length;
  await world.upstream.arrived(before);
  const order: string[] = [];
  const drained = world.ask('{ allPersons { firstName } }').then(() => order.push('drain'));
  const counted = settled(world).then(() => order.push('count'));
  first.resolve();
  await Promise.all([drained, counted]);
  expect(order).toEqual(['drain', 'count']);
});

/** What happens to a list and its total. */
type Step =
  | { readonly kind: 'ask' | 'drain' | 'fail' | 'recover' | 'settle' }
  | { readonly kind: 'pass'; readonly seconds: number }
  | { readonly kind: 'change'; readonly by: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ kind: 'ask' } as const) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('pass' as const),
      seconds: fc.integer({ min: 1, max: 400 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('change' as const),
      by: fc.integer({ min: -60, max: 60 }),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: 'settle' } as const) },
  ...(['drain', 'fail', 'recover'] as const).map((kind) => ({
    weight: 1,
    arbitrary: fc.constant({ kind }),
  })),
);

test('in any history a total is no older than twice TOTAL_COUNT_SECONDS, and only a list without one can fail', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      await using world = await startKept();
      const { clock } = world;
      const { persons } = world.sandbox;
      const lengths = [{ until: Infinity, length: persons.length }];
      /** When the list was read whole, as far as the callers know. */
      let readAt = -Infinity;
      let isDown = false;
      for (const each of steps) {
        const bound = clock.elapsed() - 10 * MINUTE;
        switch (each.kind) {
          case 'ask': {
            const { data, errors } = await world.ask<Total>(TOTAL);
            if (errors) {
              expect(isDown && readAt <= bound).toBe(true);
              break;
            }
            const recent = lengths.filter(({ until }) => until > bound);
            expect(recent.map(({ length }) => length)).toContain(data.personsConnection.totalCount);
            if (readAt <= bound && !isDown) readAt = clock.elapsed();
            break;
          }
          case 'drain':
            if (!(await world.ask('{ allPersons { id } }')).errors) readAt = clock.elapsed();
            break;
          case 'pass':
            clock.jump(each.seconds * SECOND);
            break;
          case 'change':
            // A walk that overlaps with it may count some of the records.
            await settled(world);
            lengths.at(-1)!.until = clock.elapsed();
            if (each.by > 0) persons.insert(0, each.by);
            else persons.remove(0, Math.min(-each.by, persons.length));
            lengths.push({ until: Infinity, length: persons.length });
            break;
          case 'fail':
          case 'recover':
            isDown = each.kind === 'fail';
            world.upstream.answer(isDown ? json({}, 400) : honest);
            break;
          case 'settle':
            await settled(world);
        }
      }
    }),
    { numRuns: randomRuns(15) },
  );
}, 60_000);

interface Total {
  personsConnection: { totalCount: number };
}

interface Kept extends GatewayOverFake {
  readonly clock: ManualClock;
  readonly sandbox: Service;
  /** Holds back all answers, but the first few, until it is resolved. */
  hold(answered?: number): PromiseWithResolvers<void>;
}

async function startKept(config: TestGatewayOptions['config'] = {}, persons = 137): Promise<Kept> {
  const clock = new ManualClock();
  const world = await startGatewayOverFake({ persons }, { clock, config });
  const { upstream } = world;
  return {
    ...world,
    clock,
    sandbox: upstream,
    hold: (answered = 0) => {
      const gate = Promise.withResolvers<void>();
      const held = after(gate.promise, honest);
      const [first, ...others] = [...Array<Reply>(answered).fill(honest), held];
      upstream.answer(first, ...others);
      return gate;
    },
  };
}

async function totalOf(world: Kept): Promise<number> {
  const { data, errors } = await world.ask<Total>(TOTAL);
  expect(errors).toBeUndefined();
  return data.personsConnection.totalCount;
}

async function requestsOf({ upstream }: Kept, action: () => Promise<unknown>): Promise<number> {
  const before = upstream.received.length;
  await action();
  return upstream.received.length - before;
}

/** Waits until no walk is under way. */
async function settled(world: TestGateway): Promise<void> {
  const line = 'recruiting_drains_running 0\n';
  await expect.poll(() => world.gateway.metrics.text(), { timeout: 20_000 }).toContain(line);
}
