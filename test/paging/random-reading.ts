import fc from 'fast-check';
import { expect } from 'vitest';
import { codeOf } from '../../src/errors.ts';
import { cursorsOf, decodeCursor, type Position } from '../../src/paging/cursor.ts';
import { walkList } from '../../src/paging/walk.ts';
import { MISSING_MS } from '../../src/paging/known-lists.ts';
import { CursorRefusedError, PageFailedError } from '../../src/paging/page.ts';
import { KINDS, SIZINGS, type Change } from '../service/list-model.ts';
import { readPageOf, World, type Meanwhile } from './world.ts';

/*
 * One model of a changing list, and of what its readers may see
 *
 * A list has cursors of one of three kinds, long or short or empty pages, hidden records, records without an id or with
 * the id of another one, and page sizes that are refused. It is drained, read as a connection in both directions, paged
 * through, and searched for ids; it changes in between or meanwhile, and requests are answered in any order or fail.
 *
 *     a list that stands still    each reader gets exactly what is there, or the failure of a page
 *     cursors from before         lead behind their record, or too far to the front: records repeat, and none is skipped
 *     a list that changes         a walk loses no more than one that reads page by page, and nothing is invented
 */

/** Reads lists at random, and compares what every reader gets with what it may see. */
export function readAtRandom(lists: number, seed?: number): Promise<void> {
  return fc.assert(
    fc.asyncProperty(fc.gen(), async (g) => {
      await readOneList(new Reading((below) => g(fc.nat, { max: below - 1 })));
    }),
    { numRuns: lists, ...(seed !== undefined && { seed }) },
  );
}

async function readOneList(reading: Reading): Promise<void> {
  const { random, ids } = reading;
  await pageThrough(reading);
  const readers = [
    drain,
    drain,
    drain,
    pageThrough,
    readForged,
    ...(ids === 'any' ? [] : Array<typeof drain>(5).fill(readWindow)),
    ...(ids === 'unique' ? [lookUp] : []),
  ];
  for (let steps = 3 + random(12); steps > 0; steps -= 1) {
    await readers[random(readers.length)]!(reading);
    for (let changes = random(3); changes > 0; changes -= 1) reading.change();
  }
}

/** Returns a whole number below this one. */
type Random = (below: number) => number;

/** A cursor that a client has. */
interface Taken {
  readonly cursor: string;
  readonly record: number;
  /** The list as it was then. */
  readonly list: readonly number[];
  /** The number of changes before it. */
  readonly changes: number;
}

type ConnectionPage = Awaited<ReturnType<World['read']>>;

/** The ends of a window, and how many records it may have. */
interface Ends {
  readonly first: number | null;
  readonly last: number | null;
  readonly after: Taken | undefined;
  readonly before: Taken | undefined;
}

/** Twenty pages of fewer records may not reach to the start of the lists here. */
const SMALL = 8;

class Reading {
  readonly random: Random;
  readonly world: World;
  /** Whether ids are unique, none has one, or anything. */
  readonly ids: 'unique' | 'none' | 'any';
  readonly hidesSome: boolean;
  readonly taken: Taken[] = [];
  readonly changes: Change[] = [];

  constructor(random: Random) {
    this.random = random;
    this.ids = (['any', 'none', 'unique', 'unique', 'unique'] as const)[random(5)]!;
    const [every, hides] = [5 + random(5), 2 * (1 + random(4))];
    this.hidesSome = random(4) === 0;
    const limit = random(4) === 0 ? 1 + random(9) : 10 + random(7);
    const idOf = (serial: number) => {
      if (this.ids === 'none') return null;
      if (this.ids === 'unique' || hash(serial) % every > 0) return String(serial);
      return every % 2 === 0 ? null : String(serial - (serial % 7));
    };
    this.world = new World(random(random(4) === 0 ? 3 : 90), {
      concurrency: 1 + random(5),
      kind: KINDS[random(3)]!,
      limit,
      sizing: this.sizing(),
      reports: random(4) > 0,
      ...(random(6) === 0 && { accepts: 1 + random(limit) }),
      isHidden: (serial) => this.hidesSome && hash(serial) % hides === 0,
      idOf,
    });
  }

  get shown(): number[] {
    return this.world.service.shown;
  }

  sizing() {
    return this.random(2) === 0 ? 'exact' : SIZINGS[this.random(SIZINGS.length)]!;
  }

  change(change = this.anyChange()): void {
    this.changes.push(change);
    this.world.service.apply(change);
  }

  anyChange(): Change {
    const random = this.random;
    const kind = random(10);
    // At the start, anywhere, or at the record of a cursor.
    const known = Math.max(0, this.shown.indexOf(this.anyEnd()?.record ?? -1));
    const at = [0, random(90), known][random(3)]!;
    if (kind === 0) return { do: 'size', sizing: this.sizing(), limit: 1 + random(16) };
    if (kind <= 2) return { do: 'move', from: random(90), to: at };
    return { do: kind <= 5 ? 'insert' : 'remove', at, count: [1, 1, 2, 3, 9, 30][random(6)]! };
  }

  /** What happens while a reader reads: the list changes, or requests fail, or neither. */
  meanwhile(seldom = 8): Meanwhile {
    const random = this.random;
    const happens = random(seldom);
    const changes = happens === 0 ? this.changesMeanwhile() : [];
    this.changes.push(...changes);
    return {
      changes: changes.map((change) => ({ change, after: random(25) })),
      failure: happens === 1 ? { after: random(25), answers: 1 + random(9) } : undefined,
      choose: () => random(100),
    };
  }

  changesMeanwhile(): Change[] {
    const random = this.random;
    const changes = Array.from({ length: 1 + random(3) }, () => this.anyChange());
    if (random(2) === 0) return changes.filter((change) => change.do !== 'size');
    // A record that moves and comes back looks like one that stood still.
    const from = random(90);
    const to = Math.max(0, from + random(13) - 6);
    return [
      { do: 'move', from, to },
      { do: 'move', from: to, to: from },
    ];
  }

  repeatedIds(serials: readonly number[]): Set<string | null> {
    const known = serials.map((serial) => this.world.service.idOf(serial));
    const ids = known.filter((id) => id !== null);
    return new Set(ids.filter((id, at) => ids.indexOf(id) !== at));
  }

  take(cursors: readonly string[], records: readonly number[]): void {
    const { changes } = this.world.service;
    const list = this.shown;
    for (const [at, cursor] of cursors.entries())
      this.taken.push({ cursor, record: records[at]!, list, changes });
  }

  anyEnd(): Taken | undefined {
    if (this.taken.length === 0 || this.random(3) === 0) return undefined;
    return this.taken[this.random(this.taken.length)];
  }

  anyEnds(): Ends {
    const random = this.random;
    const [after, before] = [this.anyEnd(), this.anyEnd()];
    const direction = random(5);
    const isBackward = direction <= 1;
    // About a page, or as many as are still in front of the record in its page, or any number.
    const near = isBackward && before ? positionOf(before).offset : this.world.list.size.limit;
    const count = [random(3), Math.max(0, near + 1 - random(6)), random(80)][random(3)]!;
    return {
      first: direction >= 3 ? count : null,
      last: isBackward ? count : null,
      after,
      before,
    };
  }

  changesSince({ changes }: Taken): readonly Change[] {
    return this.changes.slice(changes);
  }

  isUnchanged(taken: Taken | undefined): boolean {
    return !taken || this.changesSince(taken).every((change) => change.do === 'size');
  }

  /** Whether a cursor still leads exactly behind its record: also if fewer than a page were added or removed. */
  leadsExactly(taken: Taken): boolean {
    const { service } = this.world;
    if (this.isUnchanged(taken)) return true;
    const changed = this.changesSince(taken).map((change) =>
      change.do === 'insert' || change.do === 'remove' ? change.count : Infinity,
    );
    const areFew = changed.reduce((sum, count) => sum + count, 0) < this.pageLimit;
    const isExact = service.sizing === 'exact' && !this.maySkip(taken);
    return areFew && isExact && service.shown.includes(taken.record);
  }

  /**
   * Whether it leads where the service's own cursors lead: at the end of a page, to an offset or a hidden record behind
   * the last one; or to an offset, if so many records in front of it were removed that its own left its page.
   */
  maySkip(taken: Taken): boolean {
    const { offset, size } = positionOf(taken);
    if (this.world.service.traits.kind !== 'position') return offset === size - 1 && this.hidesSome;
    return offset === size - 1 || this.countSince(taken, 'remove') > offset;
  }

  /** Returns how many records were inserted or removed since. */
  countSince(taken: Taken, kind: 'insert' | 'remove'): number {
    const counts = this.changesSince(taken).map((change) =>
      change.do === kind ? change.count : 0,
    );
    return counts.reduce((sum, count) => sum + count, 0);
  }

  hasMoved(taken: Taken): boolean {
    return this.changesSince(taken).some((change) => change.do === 'move');
  }

  get pageLimit(): number {
    const { service, list } = this.world;
    return Math.min(service.limit, service.accepts, list.size.limit);
  }

  get hasSmallPages(): boolean {
    return this.pageLimit < SMALL || this.world.service.sizing === 'single';
  }
}

async function drain(reading: Reading): Promise<void> {
  const { random } = reading;
  const { service, known } = reading.world;
  const meanwhile = reading.meanwhile(4);
  const before = service.changes;
  const isChanging = meanwhile.changes.length > 0;
  const needed = isChanging || random(2) === 0 ? undefined : 1 + random(60);
  const walking = reading.world.walk({ after: null, records: needed }, meanwhile);
  const { records, error, end } = await walking;
  if (isChanging) return expectFewLost(reading, records, error, before);
  if (error) expect(error).toBeInstanceOf(PageFailedError);
  const isPart = error !== undefined || (needed ?? Infinity) <= records.length;
  expectExact(reading, records, reading.shown, isPart);
  const renew = () => walkList(reading.world.list, { after: null });
  if (needed === undefined && !error) expect(known.totalOf('letters', renew)).toBe(records.length);
  // It can be resumed there.
  if (end) reading.take([cursorsOf('letters')(end)], records.slice(-1));
}

/** Reads the whole connection page by page; records come and go between the pages. */
async function pageThrough(reading: Reading): Promise<void> {
  const { service } = reading.world;
  const { kind } = service.traits;
  const before = service.changes;
  const comings = reading.ids === 'unique' && kind !== 'position' ? reading.random(4) : 0;
  let left = comings;
  const onPage = ({ records, cursors }: ConnectionPage) => {
    reading.take(cursors, records);
    if (left === 0) return;
    left -= 1;
    const change = reading.anyChange();
    if (change.do === 'insert' || change.do === 'remove') reading.change(change);
  };
  const paging = reading.world.pageThrough(1 + reading.random(60), onPage);
  const records = await paging.catch((error: unknown) => {
    expect(codeOf(error)).toBe('CURSOR_INVALID');
    expect(kind === 'record' || reading.hasSmallPages).toBe(true);
  });
  if (!records) return;
  if (comings === 0) expectExact(reading, records, reading.shown);
  else expect(service.stillSince(before).filter((each) => !records.includes(each))).toEqual([]);
}

/** Compares the records with those of a list that stood still. @param isPart whether there may be fewer */
function expectExact(
  reading: Reading,
  records: readonly number[],
  shown: readonly number[],
  isPart = false,
): void {
  const { service } = reading.world;
  // Of records with one id in different pages, only one is returned.
  const repeated = reading.repeatedIds(shown);
  const isExpected = (serial: number) => !repeated.has(service.idOf(serial));
  const returned = records.filter(isExpected);
  const expected = shown.filter(isExpected).slice(0, isPart ? returned.length : undefined);
  expect(returned).toEqual(expected);
  expect(new Set(records).size).toBe(records.length);
  if (isPart) return;
  const ids = new Set(records.map((serial) => service.idOf(serial)));
  expect([...repeated].filter((id) => !ids.has(id))).toEqual([]);
}

/** No more may be lost than a walk in sequence can lose. */
function expectFewLost(
  reading: Reading,
  records: readonly number[],
  error: Error | undefined,
  before: number,
): void {
  const { service } = reading.world;
  const changes = reading.changes.slice(before);
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
  expect(lost.length).toBeLessThanOrEqual(mostLost(reading, changes, removed));
  // Records without unique ids are returned again if they move.
  const haveIds = records.every((serial) => service.idOf(serial) !== null);
  const distinct = new Set(records);
  if (haveIds && reading.repeatedIds([...distinct]).size === 0)
    expect(distinct.size).toBe(records.length);
}

/** The most that a walk in sequence can lose: an offset passes one record for each that is removed before it. */
function mostLost({ world }: Reading, changes: readonly Change[], removed: number): number {
  const { kind } = world.service.traits;
  if (kind === 'key') return 0;
  if (kind === 'position') return removed;
  // A cursor that names a record moves with it.
  return changes.some((change) => change.do === 'move') ? Infinity : 0;
}

/** Looks ids up for several callers, of whom some leave. */
async function lookUp(reading: Reading): Promise<void> {
  const { service, clock } = reading.world;
  const random = reading.random;
  clock.jump(MISSING_MS);
  const meanwhile = reading.meanwhile();
  const before = service.changes;
  // Greater ids do not exist.
  const anyIds = () => Array.from({ length: 1 + random(12) }, () => random(150));
  const callers = Array.from({ length: 1 + random(4) }, anyIds);
  const leaving = new AbortController();
  const answers = await reading.world.during(async () => {
    const left = callers
      .slice(random(8))
      .map((serials) => reading.world.find(serials, { signal: leaving.signal }));
    const staying = callers.map((serials) => reading.world.find(serials));
    leaving.abort();
    await Promise.allSettled(left);
    return Promise.all(staying);
  }, meanwhile);
  const isChanging = meanwhile.changes.length > 0;
  const still = service.stillSince(isChanging ? before : service.changes);
  // A walk over other cursors than keys may itself miss a record that stands still while others move.
  const mayMiss = isChanging && service.traits.kind !== 'key';
  const mayFail = isChanging || meanwhile.failure !== undefined;
  for (const [at, results] of answers.entries()) {
    for (const [index, result] of results.entries()) {
      const serial = callers[at]![index]!;
      if (typeof result === 'number')
        expect([result, isChanging || still.includes(result)]).toEqual([serial, true]);
      else if (result === undefined) expect(mayMiss || !still.includes(serial)).toBe(true);
      else expect(mayFail).toBe(true);
    }
  }
}

/** Reads a connection, and compares it with Relay's specification, sections 4.4 and 5.1. */
async function readWindow(reading: Reading): Promise<void> {
  const ends = reading.anyEnds();
  const meanwhile = reading.meanwhile();
  const args = { ...ends, after: ends.after?.cursor, before: ends.before?.cursor };
  const window = await reading.world
    .during(() => reading.world.read(args), meanwhile)
    .catch((error: unknown) => error as Error);
  const isChanging = meanwhile.changes.length > 0;
  if (window instanceof Error) return expectRefused(reading, window, ends, meanwhile);
  if (isChanging) return;
  expectWindow(reading, window, ends);
  expect(new Set(window.cursors).size).toBe(window.cursors.length);
  reading.take(window.cursors, window.records);
}

/** Reads behind or in front of a cursor that anybody can make: it is refused, or not, and leads in no circles. */
async function readForged({ world, random }: Reading): Promise<void> {
  const anyCursor = () => [null, '3', '17', '99', 'x'][random(5)]!;
  const size = 1 + random(60);
  const ids = Array.from({ length: size }, () => [null, String(random(50))][random(2)]!);
  const page = { ...readPageOf(anyCursor(), []), ids, endCursor: anyCursor() };
  const cursor = cursorsOf('letters')({ page, offset: random(size) });
  const count = random(60);
  const args = [
    { first: count, after: cursor },
    { last: count, before: cursor },
    { first: count, before: cursor },
  ][random(3)]!;
  const reading = () =>
    world.read(args).catch((error: unknown) => {
      expect(codeOf(error)).toMatch(/^(CURSOR_INVALID|BAD_USER_INPUT)$/);
    });
  expect(await world.costOf(reading)).toBeLessThan(4 * (world.service.shown.length + 40));
}

/** A cursor is refused if its record is gone, and its former position is unknown. */
function expectRefused(
  reading: Reading,
  error: Error,
  { last, after, before }: Ends,
  meanwhile: Meanwhile,
): void {
  const { kind } = reading.world.service.traits;
  const code = codeOf(error);
  if (meanwhile.failure && error instanceof PageFailedError) return;
  if (reading.ids === 'none' && before && code === 'CURSOR_INVALID') {
    // Without ids, only the records of its own page are known to be in front of it.
    const isOwnPage = last !== null && !after && reading.isUnchanged(before);
    if (isOwnPage) expect(last).toBeGreaterThanOrEqual(positionOf(before).offset);
    return;
  }
  if (meanwhile.changes.length > 0) {
    const isRefusal = error instanceof CursorRefusedError || code === 'DRAIN_STALLED';
    if (isRefusal) return;
  } else {
    expect(reading.isUnchanged(after) && reading.isUnchanged(before)).toBe(false);
    // A record that is still there is found.
    if (reading.ids === 'unique' && !after) expect(reading.shown).not.toContain(before!.record);
    // A key leads on. In front of `before`, a record that came into its page looks like an offset that slid.
    const isFound = reading.ids === 'unique' && kind === 'key' && !before;
    if (isFound) expect(reading.hasSmallPages).toBe(true);
  }
  expect(code, error.stack).toBe('CURSOR_INVALID');
}

/** A connection is a window of the list between a place where it may begin and one where it may end. */
function expectWindow(reading: Reading, window: ConnectionPage, ends: Ends): void {
  const { first, last, after, before } = ends;
  const { service, list } = reading.world;
  const all = reading.shown;
  const hasChanged = !reading.isUnchanged(after) || !reading.isUnchanged(before);
  const isOffset = service.traits.kind === 'position';
  // Without ids nothing is found again, and where records are hidden, how far an offset slid is not seen.
  if (hasChanged && (reading.ids === 'none' || (reading.hidesSome && isOffset))) return;
  const isForward = (between: readonly number[]) => {
    const size = first ?? list.size.limit;
    const isMore = between.length > size || (first === null && before !== undefined);
    // Records that the service hides may follow.
    const isNext = window.hasNextPage === isMore || (window.hasNextPage && reading.hidesSome);
    const isPrevious = window.hasPreviousPage === (after !== undefined);
    return isNext && isPrevious && isEqual(window.records, between.slice(0, size));
  };
  const isBackward = (between: readonly number[], end: number) => {
    const start = Math.max(0, between.length - last!);
    const isMore = before !== undefined && (all.includes(before.record) || end < all.length);
    // Behind it, a cursor that names an offset may have passed the border.
    const isNext = window.hasNextPage === isMore || (after !== undefined && hasChanged);
    const isPrevious = window.hasPreviousPage === start > 0;
    return isNext && isPrevious && isEqual(window.records, between.slice(start));
  };
  const isWindow = last === null ? isForward : isBackward;
  const isOne = startsOf(reading, after).some((start) =>
    endsOf(reading, before, start, last).some((end) => isWindow(all.slice(start, end), end)),
  );
  expect(isOne, JSON.stringify({ window, ends, all })).toBe(true);
}

/** Where a connection behind a record may begin: after changes also earlier, so that records repeat. */
function startsOf(reading: Reading, after: Taken | undefined): number[] {
  const all = reading.shown;
  if (!after) return [0];
  const own = all.indexOf(after.record) + 1;
  if (reading.leadsExactly(after)) return [own];
  if (reading.maySkip(after) || reading.hasMoved(after)) return range(0, all.length);
  const next = after.list
    .slice(after.list.indexOf(after.record) + 1)
    .find((record) => all.includes(record));
  return range(0, own || (next === undefined ? all.length : all.indexOf(next)));
}

/**
 * Where a connection in front of a record may end: if the record is gone, behind all that preceded it. An offset passes
 * one of them for each record that was inserted in front of it.
 */
function endsOf(
  reading: Reading,
  before: Taken | undefined,
  start: number,
  last: number | null,
): number[] {
  const all = reading.shown;
  const own = before ? all.indexOf(before.record) : -1;
  if (own >= start) return [own];
  if (!before || last === null) return [all.length];
  if (reading.hasMoved(before)) return range(start, all.length);
  // In front of `after` it ends nothing.
  if (own >= 0) return [all.length];
  const previous = before.list
    .slice(0, before.list.indexOf(before.record))
    .findLast((record) => all.includes(record));
  const isOffset = reading.world.service.traits.kind === 'position';
  const passed = isOffset ? reading.countSince(before, 'insert') : 0;
  const end = previous === undefined ? 0 : all.indexOf(previous) + 1;
  return range(Math.max(start, end - passed), all.length);
}

function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, at) => from + at);
}

function isEqual(records: readonly number[], others: readonly number[]): boolean {
  return records.length === others.length && records.every((record, at) => record === others[at]);
}

function positionOf({ cursor }: Taken): Position {
  return decodeCursor('letters', cursor)!;
}

function hash(serial: number): number {
  return (Math.imul(serial + 1, 0x9e3779b1) >>> 8) & 0xffff;
}
