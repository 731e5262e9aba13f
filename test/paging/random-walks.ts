import fc from 'fast-check';
import { expect } from 'vitest';
import { codeOf } from '../../src/errors.ts';
import type { ListWalkOptions } from '../../src/paging/list-walk.ts';
import { CursorRefusedError, PageFailedError, ReadPage } from '../../src/paging/page.ts';
import { KINDS, ListModel, SIZINGS, type Change } from '../service/list-model.ts';
import { World } from './world.ts';

/**
 * Walks lists at random: three kinds of cursors, long and short and empty pages, records without ids, refused sizes and
 * cursors, requests answered in any order. Each list is walked some times, and changes between the walks or during one.
 */
export function walkAtRandom(lists: number, seed?: number): Promise<void> {
  return fc.assert(
    fc.asyncProperty(fc.gen(), (g) => walkOneList((below) => g(fc.nat, { max: below - 1 }))),
    { numRuns: lists, ...(seed !== undefined && { seed }) },
  );
}

type Random = (below: number) => number;
type Walked = Awaited<ReturnType<World['walk']>>;

async function walkOneList(random: Random): Promise<void> {
  const world = randomWorld(random);
  const { service } = world;
  const rounds = 2 + random(5);
  for (let round = 1; round <= rounds; round += 1) {
    const isChanging = round > 1 && random(3) === 0;
    const before = service.changes;
    const changes = randomChanges(random, isChanging);
    if (!isChanging && round > 1) for (const change of changes) service.apply(change);
    const part = isChanging || round === 1 ? { after: null } : randomPart(random, service);
    const walked = await world.walk(part, () => random(100), {
      changes: isChanging ? changes.map((change) => ({ change, after: random(25) })) : [],
      failure:
        !isChanging && random(8) === 0 ? { after: random(25), answers: 1 + random(9) } : undefined,
    });
    if (isChanging) expectFewLost(service, walked, { before, changes });
    else expectExact(service, part, walked);
  }
}

function randomPart(random: Random, service: ListModel): ListWalkOptions<number> {
  const records = random(3) === 0 ? 1 + random(60) : undefined;
  const first = Math.min(1 + random(40), service.accepts);
  let after: string | null = null;
  for (let pages = random(2) === 0 ? random(9) : 0; pages > 0; pages -= 1)
    after = service.page(after, first).endCursor;
  const start =
    random(4) === 0 ? new ReadPage(after, service.page(after, Math.min(first, 10))) : undefined;
  return { after, records, start };
}

/** Compares a walk with a list that stood still. */
function expectExact(
  service: ListModel,
  part: ListWalkOptions<number>,
  { records, error }: Walked,
): void {
  if (error) expect(error).toBeInstanceOf(PageFailedError);
  const shown = service.shownBehind(part.after);
  // Of records with one id in different pages, only one is returned.
  const repeated = repeatedIds(service, shown);
  const isExpected = (serial: number) => !repeated.has(service.idOf(serial));
  const returned = records.filter(isExpected);
  const isPart = error !== undefined || (part.records ?? Infinity) <= records.length;
  const expected = shown.filter(isExpected).slice(0, isPart ? returned.length : undefined);
  expect(returned).toEqual(expected);
  expect(new Set(records).size).toBe(records.length);
  if (isPart) return;
  const ids = new Set(records.map((serial) => service.idOf(serial)));
  expect([...repeated].filter((id) => !ids.has(id))).toEqual([]);
}

function repeatedIds(service: ListModel, serials: readonly number[]): Set<string | null> {
  const ids = serials.map((serial) => service.idOf(serial)).filter((id) => id !== null);
  return new Set(ids.filter((id, at) => ids.indexOf(id) !== at));
}

/** No more may be lost than a walk in sequence can lose: see `mayLose`. */
function expectFewLost(
  service: ListModel,
  { records, error }: Walked,
  { before, changes }: { before: number; changes: readonly Change[] },
): void {
  const removed = changes.reduce(
    (sum, each) => sum + (each.do === 'remove' ? each.count : each.do === 'move' ? 1 : 0),
    0,
  );
  if (error) {
    // A cursor that names a record is refused without the record, and leads back where it moved back.
    const isRefusal = error instanceof CursorRefusedError || codeOf(error) === 'DRAIN_STALLED';
    expect({ isRefusal, kind: service.traits.kind }, error.stack).toEqual({
      isRefusal: true,
      kind: 'record',
    });
    expect(removed).toBeGreaterThan(0);
    return;
  }
  const identify = (serial: number) => service.idOf(serial) ?? serial;
  const returned = new Set(records.map(identify));
  const lost = service.stillSince(before).filter((serial) => !returned.has(identify(serial)));
  expect(lost.length).toBeLessThanOrEqual(mayLose(service, changes, removed));
  // Records without unique ids are returned again if they move.
  const haveIds = records.every((serial) => service.idOf(serial) !== null);
  const distinct = new Set(records);
  if (haveIds && repeatedIds(service, [...distinct]).size === 0)
    expect(distinct.size).toBe(records.length);
}

/** The most records that a walk in sequence can lose: an offset passes one record for each that is removed before it. */
function mayLose({ traits }: ListModel, changes: readonly Change[], removed: number): number {
  if (traits.kind === 'key') return 0;
  if (traits.kind === 'position') return removed;
  // A cursor that names a record moves with it.
  return changes.some((change) => change.do === 'move') ? Infinity : 0;
}

function randomWorld(random: Random): World {
  const sizing = random(2) === 0 ? 'exact' : SIZINGS[random(SIZINGS.length)]!;
  const ids = random(8);
  const hides = random(4) === 0 ? 1 + random(4) : Infinity;
  const limit = random(4) === 0 ? 1 + random(9) : 10 + random(7);
  return new World(random(90), {
    concurrency: 1 + random(5),
    kind: KINDS[random(3)]!,
    limit,
    sizing,
    reports: random(4) > 0,
    ...(random(6) === 0 && { accepts: 1 + random(limit) }),
    isHidden: (serial) => hides < Infinity && hash(serial) % (2 * hides) === 0,
    idOf: (serial) => {
      if (ids === 0) return hash(serial) % 5 === 0 ? null : String(serial);
      if (ids === 1 && hash(serial) % 9 === 0) return String(serial - (serial % 7));
      return String(serial);
    },
  });
}

function hash(serial: number): number {
  return (Math.imul(serial + 1, 0x9e3779b1) >>> 8) & 0xffff;
}

function randomChanges(random: Random, isChanging: boolean): Change[] {
  if (isChanging && random(2) === 0) {
    // A record that moves and comes back looks like one that stood still.
    const from = random(90);
    const to = Math.max(0, from + random(13) - 6);
    return [
      { do: 'move', from, to },
      { do: 'move', from: to, to: from },
    ];
  }
  const length = random(isChanging ? 3 : 6);
  return Array.from({ length }, () => randomChange(random, isChanging));
}

function randomChange(random: Random, isChanging: boolean): Change {
  const count = [1, 1, 2, 9][random(4)]!;
  const at = random(90);
  const kind = random(isChanging ? 8 : 9);
  if (kind === 8) return { do: 'limit', to: 1 + random(16) };
  if (kind >= 6) return { do: 'move', from: at, to: random(90) };
  if (kind >= 3) return { do: 'remove', at, count };
  return { do: 'insert', at: random(3) === 0 ? 0 : at, count };
}
