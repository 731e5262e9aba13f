import { setImmediate } from 'node:timers/promises';
import { parse } from 'graphql';
import { describe, expect, test, vi } from 'vitest';
import { OperatorError } from '../../src/errors.ts';
import { drain } from '../../src/paging/drain.ts';
import { CallerBudgets, PageBudget } from '../../src/paging/page-budget.ts';
import { walkList, type WalkedPages } from '../../src/paging/walk.ts';
import { PageFailedError, type FetchPage } from '../../src/paging/page.ts';
import { SharedWalks, type WalkReader } from '../../src/paging/shared-walk.ts';
import { after, honest } from '../service/replies.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { ManualClock } from '../support/random/manual-clock.ts';
import type { Serials } from '../service/list-model.ts';
import { recordsOf, World } from './world.ts';

const { signal } = new AbortController();
const unlimited = () => new PageBudget(new CallerBudgets(0, new ManualClock()), 'anybody', true);

test.each([new Error('secret'), new OperatorError('TOKENS_LOST', 'secret')])(
  'a drain that ends for a reason that is not for callers keeps it from them: %o',
  async (reason) => {
    const { world, join } = sharedList(100);
    const pages = join();
    world.onRead = () => {
      if (world.requests > 5) throw reason;
    };
    const budget = { max: 1_000, left: 1_000 };
    const { error } = await recordsOf(
      drain(pages, { limit: undefined, budget, signal, toCursor: String }),
      (failure) => failure,
    );
    expect(error).toMatchObject({ extensions: { drained: 3 } });
    expect(error!.message).not.toContain('secret');
  },
);

test('drains at the same time that begin behind different records are not one', async () => {
  await using gateway = await startGatewayOverService();
  const { data } = await gateway.ask<{ c: { edges: { cursor: string; node: object }[] } }>(
    '{ c: personsConnection(first: 3) { edges { cursor node { id } } } }',
  );
  const { edges } = data.c;
  const behind = edges.slice(0, 2).map(async ({ cursor }) => {
    const query = `{ allPersons(after: ${JSON.stringify(cursor)}, limit: 1) { id } }`;
    return (await gateway.ask<{ allPersons: object[] }>(query)).data.allPersons[0];
  });
  expect(await Promise.all(behind)).toEqual(edges.slice(1).map(({ node }) => node));
});

describe('with MAX_DRAINS=1, drains at the same time', () => {
  const options = { config: { maxDrains: 1 } };

  test('share one walk if they are equal, and otherwise read one list after the other', async () => {
    await using gateway = await startGatewayOverService({ persons: 400 }, options);
    const drainAs = async (key: string) => {
      const { data } = await gateway.ask(`{ allPersons { ${key}: id } }`);
      expect(data).toMatchObject({ allPersons: { length: 400 } });
    };
    await Promise.all(['a', 'b', 'a', 'c', 'a'].map(drainAs));
    const keys = gateway.service.received.map(({ body }) => /([abc]): id/.exec(body)![1]);
    // So that not all of them are in memory at once.
    expect(keys.filter((key, at) => key !== keys[at - 1])).toEqual(['a', 'b', 'c']);
    expect(keys.filter((key) => key === 'a')).toHaveLength(9);
  });

  test('do not delay one that needs only a page', async () => {
    await using gateway = await startGatewayOverService({ persons: 400 }, options);
    const gate = Promise.withResolvers<void>();
    gateway.service.answer(after(gate.promise, honest), honest);
    const whole = gateway.ask('{ allPersons { id } }');
    await gateway.service.arrived(1);
    const { data } = await gateway.ask('{ allPersons(limit: 50) { id } }');
    expect(data).toMatchObject({ allPersons: { length: 50 } });
    gate.resolve();
    await whole;
  });
});

test('a drain whose caller left before it began ends without an error, and nothing is sent', async () => {
  await using gateway = await startGatewayOverService();
  const left = { signal: AbortSignal.abort(new Error('left')) };
  // An unhandled rejection would end the process; here it would fail the run.
  await Promise.allSettled([gateway.ask('{ allPersons { id } }', {}, left)]);
  await setImmediate();
  expect(gateway.service.received).toHaveLength(0);
});

test('a drain that its program ends is cancelled: it is not said that a page could not be read', async () => {
  await using world = await startGatewayOverService({ persons: 300 });
  const leaving = new AbortController();
  world.service.answer(honest, async () => leaving.abort());
  const drained = { document: parse('{ allPersons { id } }'), signal: leaving.signal };
  const result = await world.gateway.executor(drained);
  expect(JSON.stringify(result)).toContain('was cancelled by its caller');
});

describe('a shared walk', () => {
  test('returns every record to a reader who is slow, or who joins later, and charges nobody for earlier pages', async () => {
    const list = sharedList(100);
    const [slow, fast] = [list.join(), list.join()];
    await slow.next();
    for (let pages = 0; pages < 50; pages += 1) await fast.next();
    const budget = unlimited();
    const spend = vi.spyOn(budget, 'spend');
    const late = await all(list.join({ budget }));
    expect(late).toEqual(list.records);
    expect(await all(slow)).toEqual(list.records.slice(1));
    expect([list.walks.length, list.world.requests]).toEqual([1, 100]);
    expect(spend).toHaveBeenCalledTimes(50);
  });

  test('goes on if a reader leaves, who does not wait for its page, and ends with the last one', async () => {
    const list = sharedList(100);
    const leaving = new AbortController();
    const [first, second] = [list.join({ signal: leaving.signal }), list.join()];
    await first.next();
    await second.next();
    list.world.holds = true;
    const page = first.next();
    await setImmediate();
    leaving.abort();
    await expect(page).rejects.toThrow(/abort/i);
    const { signal: ending } = list.walks[0]!;
    expect(ending.aborted).toBe(false);
    list.world.holds = false;
    list.world.answerOne();
    await second.next();
    await second.return();
    expect(ending.aborted).toBe(true);
    expect(list.world.requests).toBeLessThan(5);
  });

  test('is not begun for a reader who has left', async () => {
    const list = sharedList(100);
    const left = list.join({ signal: AbortSignal.abort(new Error('left')) });
    await expect(left.next()).rejects.toThrow('left');
    expect(list.world.requests).toBe(0);
  });

  test('that fails fails for all readers, behind the pages before', async () => {
    const list = sharedList(100);
    list.world.onRead = () => (list.world.fails = list.world.requests === 3);
    const ended = [list.join(), list.join()].map((reader) => recordsOf(reader, (error) => error));
    for (const { records, error } of await Promise.all(ended)) {
      expect(records).toEqual([0, 2]);
      expect(error).toBeInstanceOf(PageFailedError);
    }
  });
});

/** A list of pages with one record each, of which every third one is hidden, and the walks of it. */
function sharedList(pages: number) {
  const world = new World(pages, { limit: 1, isHidden: (serial) => serial % 3 === 1 });
  const shared = new SharedWalks();
  const walks: WalkReader[] = [];
  const begin = (readers: WalkReader) => {
    walks.push(readers);
    const fetchPage: FetchPage<Serials> = (...request) => {
      readers.budget.spend();
      return world.fetchPage(...request);
    };
    const list = { ...world.list, fetchPage };
    return walkList(list, { after: null, readsAhead: false });
  };
  const join = (options: Partial<WalkReader> = {}) =>
    shared.join('list', begin, { budget: unlimited(), signal, ...options });
  return { world, records: world.service.shown, walks, join };
}

async function all(pages: WalkedPages<Serials>): Promise<number[]> {
  return (await recordsOf(pages)).records;
}
