import fc from 'fast-check';
import { expect } from 'vitest';
import { codeOf } from '../../src/errors.ts';
import { cursorsOf, decodeCursor, type Position } from '../../src/paging/cursor.ts';
import { walkList, type ListWalkOptions } from '../../src/paging/list-walk.ts';
import { WALK_AGAIN_MS } from '../../src/paging/look-up.ts';
import { CursorRefusedError, PageFailedError, ReadPage } from '../../src/paging/page.ts';
import { KINDS, SIZINGS, type Change } from '../service/list-model.ts';
import { World, type Meanwhile } from './world.ts';

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
      const reading = new RandomReading((below) => g(fc.nat, { max: below - 1 }));
      await reading.run();
    }),
    { numRuns: lists, ...(seed !== undefined && { seed }) },
  );
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

class RandomReading {
  readonly #random: Random;
  readonly #world: World;
  /** Whether ids are unique, none has one, or anything. */
  readonly #ids: 'unique' | 'none' | 'any';
  readonly #taken: Taken[] = [];
  readonly #changes: Change[] = [];

  constructor(random: Random) {
    this.#random = random;
    this.#ids = (['any', 'none', 'unique', 'unique'] as const)[random(4)]!;
    const [every, hides] = [5 + random(5), 2 * (1 + random(4))];
    const hidesSome = random(4) === 0;
    const limit = random(4) === 0 ? 1 + random(9) : 10 + random(7);
    const idOf = (serial: number) => {
      if (this.#ids === 'none') return null;
      if (this.#ids === 'unique' || hash(serial) % every > 0) return String(serial);
      return every % 2 === 0 ? null : String(serial - (serial % 7));
    };
    this.#world = new World(random(90), {
      concurrency: 1 + random(5),
      kind: KINDS[random(3)]!,
      limit,
      sizing: this.#sizing(),
      reports: random(4) > 0,
      ...(random(6) === 0 && { accepts: 1 + random(limit) }),
      isHidden: (serial) => hidesSome && hash(serial) % hides === 0,
      idOf,
    });
  }

  async run(): Promise<void> {
    const readers = [
      () => this.#drain(),
      () => this.#drain(),
      () => this.#pageThrough(),
      ...(this.#ids === 'any' ? [] : Array<() => Promise<void>>(4).fill(() => this.#readWindow())),
      ...(this.#ids === 'unique' ? [() => this.#lookUp()] : []),
    ];
    for (let steps = 2 + this.#random(9); steps > 0; steps -= 1) {
      await readers[this.#random(readers.length)]!();
      for (let changes = this.#random(3); changes > 0; changes -= 1) this.#change();
    }
  }

  get #shown(): number[] {
    return this.#world.service.shown;
  }

  #sizing() {
    return this.#random(2) === 0 ? 'exact' : SIZINGS[this.#random(SIZINGS.length)]!;
  }

  #change(change = this.#anyChange()): void {
    this.#changes.push(change);
    this.#world.service.apply(change);
  }

  #anyChange(): Change {
    const random = this.#random;
    const kind = random(10);
    const at = random(3) === 0 ? 0 : random(90);
    if (kind === 0) return { do: 'size', sizing: this.#sizing(), limit: 1 + random(16) };
    if (kind <= 2) return { do: 'move', from: random(90), to: at };
    return { do: kind <= 6 ? 'insert' : 'remove', at, count: [1, 1, 2, 3, 9, 30][random(6)]! };
  }

  /** What happens while a reader reads: the list changes, or requests fail, or neither. */
  #meanwhile(): Meanwhile {
    const random = this.#random;
    const happens = random(8);
    const changes = happens === 0 ? this.#changesMeanwhile() : [];
    this.#changes.push(...changes);
    return {
      changes: changes.map((change) => ({ change, after: random(25) })),
      failure: happens === 1 ? { after: random(25), answers: 1 + random(9) } : undefined,
      choose: () => random(100),
    };
  }

  #changesMeanwhile(): Change[] {
    const random = this.#random;
    const changes = Array.from({ length: 1 + random(3) }, () => this.#anyChange());
    if (random(2) === 0) return changes.filter((change) => change.do !== 'size');
    // A record that moves and comes back looks like one that stood still.
    const from = random(90);
    const to = Math.max(0, from + random(13) - 6);
    return [
      { do: 'move', from, to },
      { do: 'move', from: to, to: from },
    ];
  }

  async #drain(): Promise<void> {
    const { service, totals } = this.#world;
    const meanwhile = this.#meanwhile();
    const before = service.changes;
    const isChanging = meanwhile.changes.length > 0;
    const part = isChanging ? { after: null } : this.#part();
    const { records, error, end } = await this.#world.walk(part, meanwhile);
    if (isChanging) return this.#expectFewLost(records, error, before);
    if (error) expect(error).toBeInstanceOf(PageFailedError);
    const isPart = error !== undefined || (part.records ?? Infinity) <= records.length;
    this.#expectExact(records, service.shownBehind(part.after), isPart);
    const isWhole = part.after === null && !part.start && part.records === undefined;
    if (isWhole && !error)
      expect(totals.of('letters', () => walkList(this.#world.list, { after: null }))).toBe(
        records.length,
      );
    // It can be resumed there.
    if (end) this.#take([cursorsOf('letters', end)(end.offset, end.id)], records.slice(-1));
  }

  /** The whole list, or a part of it. */
  #part(): ListWalkOptions<number> {
    const { service } = this.#world;
    const random = this.#random;
    if (random(2) === 0) return { after: null };
    const records = random(3) === 0 ? 1 + random(60) : undefined;
    const first = Math.min(1 + random(40), service.accepts);
    let after: string | null = null;
    for (let pages = random(2) === 0 ? random(9) : 0; pages > 0; pages -= 1)
      after = service.page(after, first).endCursor;
    const start =
      random(4) === 0 ? new ReadPage(after, service.page(after, Math.min(first, 10))) : undefined;
    return { after, records, start };
  }

  /** Reads the whole connection page by page; records come and go between the pages. */
  async #pageThrough(): Promise<void> {
    const { service } = this.#world;
    const { kind } = service.traits;
    const before = service.changes;
    const comings = this.#ids === 'unique' && kind !== 'position' ? this.#random(4) : 0;
    let left = comings;
    const onPage = ({ records, cursors }: ConnectionPage) => {
      this.#take(cursors, records);
      if (left === 0) return;
      left -= 1;
      const change = this.#anyChange();
      if (change.do === 'insert' || change.do === 'remove') this.#change(change);
    };
    const paging = this.#world.pageThrough(1 + this.#random(60), onPage);
    const records = await paging.catch((error: unknown) => {
      expect(codeOf(error)).toBe('CURSOR_INVALID');
      expect(kind === 'record' || this.#hasSmallPages).toBe(true);
    });
    if (!records) return;
    if (comings === 0) this.#expectExact(records, this.#shown);
    else expect(service.stillSince(before).filter((each) => !records.includes(each))).toEqual([]);
  }

  /** Compares the records with those of a list that stood still. @param isPart whether there may be fewer */
  #expectExact(records: readonly number[], shown: readonly number[], isPart = false): void {
    const { service } = this.#world;
    // Of records with one id in different pages, only one is returned.
    const repeated = this.#repeatedIds(shown);
    const isExpected = (serial: number) => !repeated.has(service.idOf(serial));
    const returned = records.filter(isExpected);
    const expected = shown.filter(isExpected).slice(0, isPart ? returned.length : undefined);
    expect(returned).toEqual(expected);
    expect(new Set(records).size).toBe(records.length);
    if (isPart) return;
    const ids = new Set(records.map((serial) => service.idOf(serial)));
    expect([...repeated].filter((id) => !ids.has(id))).toEqual([]);
  }

  #repeatedIds(serials: readonly number[]): Set<string | null> {
    const known = serials.map((serial) => this.#world.service.idOf(serial));
    const ids = known.filter((id) => id !== null);
    return new Set(ids.filter((id, at) => ids.indexOf(id) !== at));
  }

  /** No more may be lost than a walk in sequence can lose: see `#mayLose`. */
  #expectFewLost(records: readonly number[], error: Error | undefined, before: number): void {
    const { service } = this.#world;
    const changes = this.#changes.slice(before);
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
    expect(lost.length).toBeLessThanOrEqual(this.#mayLose(changes, removed));
    // Records without unique ids are returned again if they move.
    const haveIds = records.every((serial) => service.idOf(serial) !== null);
    const distinct = new Set(records);
    if (haveIds && this.#repeatedIds([...distinct]).size === 0)
      expect(distinct.size).toBe(records.length);
  }

  /** The most that a walk in sequence can lose: an offset passes one record for each that is removed before it. */
  #mayLose(changes: readonly Change[], removed: number): number {
    const { kind } = this.#world.service.traits;
    if (kind === 'key') return 0;
    if (kind === 'position') return removed;
    // A cursor that names a record moves with it.
    return changes.some((change) => change.do === 'move') ? Infinity : 0;
  }

  /** Looks ids up for several callers, of whom some leave. */
  async #lookUp(): Promise<void> {
    const { service, clock } = this.#world;
    const random = this.#random;
    clock.jump(WALK_AGAIN_MS);
    const meanwhile = this.#meanwhile();
    const before = service.changes;
    // Greater ids do not exist.
    const anyIds = () => Array.from({ length: 1 + random(12) }, () => random(150));
    const callers = Array.from({ length: 1 + random(4) }, anyIds);
    const leaving = new AbortController();
    const answers = await this.#world.during(async () => {
      const left = callers
        .slice(random(8))
        .map((serials) => this.#world.find(serials, { signal: leaving.signal }));
      const staying = callers.map((serials) => this.#world.find(serials));
      leaving.abort();
      await Promise.allSettled(left);
      return Promise.all(staying);
    }, meanwhile);
    const still = service.stillSince(meanwhile.changes.length > 0 ? before : service.changes);
    // A walk over other cursors than keys may itself miss a record that stands still while others move.
    const mayMiss = meanwhile.changes.length > 0 && service.traits.kind !== 'key';
    for (const [at, results] of answers.entries()) {
      for (const [index, result] of results.entries()) {
        const serial = callers[at]![index]!;
        if (typeof result === 'number') expect(result).toBe(serial);
        else if (result === undefined) expect(mayMiss || !still.includes(serial)).toBe(true);
        else expect(meanwhile.changes.length > 0 || meanwhile.failure !== undefined).toBe(true);
      }
      if (meanwhile.changes.length > 0 || meanwhile.failure) continue;
      const standing = callers[at]!.map((each) => (still.includes(each) ? each : undefined));
      expect(results).toEqual(standing);
    }
  }

  #take(cursors: readonly string[], records: readonly number[]): void {
    const { changes } = this.#world.service;
    const list = this.#shown;
    for (const [at, cursor] of cursors.entries())
      this.#taken.push({ cursor, record: records[at]!, list, changes });
  }

  #anyEnd(): Taken | undefined {
    if (this.#taken.length === 0 || this.#random(2) === 0) return undefined;
    return this.#taken[this.#random(this.#taken.length)];
  }

  #anyEnds(): Ends {
    const random = this.#random;
    const [after, before] = [this.#anyEnd(), this.#anyEnd()];
    const direction = random(5);
    const isBackward = direction <= 1;
    // A page, or as many as are in front of the record in its page, or about as many, or any number.
    const near = isBackward && before ? positionOf(before).offset : this.#world.list.size.limit;
    const count = [random(3), Math.max(0, near + random(3) - 1), random(80)][random(3)]!;
    return {
      first: direction >= 3 ? count : null,
      last: isBackward ? count : null,
      after,
      before,
    };
  }

  /** Reads a connection, and compares it with Relay's specification, sections 4.4 and 5.1. */
  async #readWindow(): Promise<void> {
    const ends = this.#anyEnds();
    const meanwhile = this.#meanwhile();
    const args = { ...ends, after: ends.after?.cursor, before: ends.before?.cursor };
    const reading = this.#world.during(() => this.#world.read(args), meanwhile);
    const window = await reading.catch((error: unknown) => error as Error);
    const isChanging = meanwhile.changes.length > 0;
    if (window instanceof Error) return this.#expectRefused(window, ends, meanwhile);
    if (isChanging) return;
    this.#expectWindow(window, ends);
    expect(new Set(window.cursors).size).toBe(window.cursors.length);
    this.#take(window.cursors, window.records);
  }

  /** A cursor is refused if its record is gone, and its former position is unknown. */
  #expectRefused(error: Error, { after, before }: Ends, meanwhile: Meanwhile): void {
    const { kind } = this.#world.service.traits;
    const code = codeOf(error);
    if (meanwhile.failure && error instanceof PageFailedError) return;
    if (this.#ids === 'none' && before && code === 'BAD_USER_INPUT') return;
    if (meanwhile.changes.length > 0) {
      const isRefusal = error instanceof CursorRefusedError || code === 'DRAIN_STALLED';
      if (isRefusal) return;
    } else {
      expect(this.#isUnchanged(after) && this.#isUnchanged(before)).toBe(false);
      // A record that is still there is found.
      if (this.#ids === 'unique' && !after) expect(this.#shown).not.toContain(before!.record);
      if (this.#ids === 'unique') expect(kind !== 'key' || this.#hasSmallPages).toBe(true);
    }
    expect(code, error.stack).toBe('CURSOR_INVALID');
  }

  #expectWindow(window: ConnectionPage, ends: Ends): void {
    const { records, hasNextPage, hasPreviousPage } = window;
    const { first, last, after, before } = ends;
    const all = this.#shown;
    const hasChanged = !this.#isUnchanged(after) || !this.#isUnchanged(before);
    // Without ids nothing is found again.
    if (this.#ids === 'none' && hasChanged) return;
    const start = this.#startOf(after, records, last);
    // Where it begins is not seen in an empty connection.
    if (start === undefined && (last === null || records.length === 0)) return;
    // Neither is where it ends, in front of a record that is gone.
    if (last === 0 && before && !all.includes(before.record)) return;
    const end = this.#endOf(before, start, records, last);
    const between = all.slice(start ?? 0, end);
    if (last === null) {
      const size = first ?? this.#world.list.size.limit;
      expect(records).toEqual(between.slice(0, size));
      expect(hasPreviousPage).toBe(after !== undefined);
      expect(hasNextPage).toBe(between.length > size || (first === null && before !== undefined));
    } else {
      expect(records).toEqual(between.slice(Math.max(0, between.length - last)));
      if (start !== undefined) expect(hasPreviousPage).toBe(between.length > last);
      if (!before) expect(hasNextPage).toBe(false);
      // Behind it, a cursor that names an offset may have passed the border.
      else if (!after) expect(hasNextPage).toBe(all.includes(before.record) || end < all.length);
      else if (!hasChanged) expect(hasNextPage).toBe(true);
    }
  }

  /**
   * Where a connection behind a record begins, or has to begin. It may begin earlier after changes.
   *
   * @returns undefined if that is unknown
   */
  #startOf(after: Taken | undefined, records: readonly number[], last: number | null) {
    const all = this.#shown;
    if (!after) return 0;
    const own = all.indexOf(after.record) + 1;
    if (this.#leadsExactly(after)) return own;
    if (records.length === 0 || records.length === last) return undefined;
    const start = all.indexOf(records[0]!);
    // The service's own cursor of the last record of a page skips what an offset skips.
    if (this.#isOffset(after) || this.#hasMoved(after)) return start;
    const next = after.list
      .slice(after.list.indexOf(after.record) + 1)
      .find((record) => all.includes(record));
    expect(start).toBeLessThanOrEqual(own || (next === undefined ? all.length : all.indexOf(next)));
    return start;
  }

  /** Where a connection in front of a record ends: if the record is gone, behind all that preceded it. */
  #endOf(
    before: Taken | undefined,
    start: number | undefined,
    records: readonly number[],
    last: number | null,
  ): number {
    const all = this.#shown;
    const own = before ? all.indexOf(before.record) : -1;
    const shown = records.length > 0 ? all.indexOf(records.at(-1)!) + 1 : (start ?? 0);
    // In front of `after` it ends nothing.
    if (own >= 0 && start === undefined) return shown === own ? own : all.length;
    if (own >= (start ?? 0)) return own;
    if (!before || own >= 0 || last === null) return all.length;
    const previous = before.list
      .slice(0, before.list.indexOf(before.record))
      .findLast((record) => all.includes(record));
    if (!this.#hasMoved(before))
      expect(shown).toBeGreaterThan(previous === undefined ? -1 : all.indexOf(previous));
    return shown;
  }

  #changesSince({ changes }: Taken): readonly Change[] {
    return this.#changes.slice(changes);
  }

  #isUnchanged(taken: Taken | undefined): boolean {
    return !taken || this.#changesSince(taken).every((change) => change.do === 'size');
  }

  /** Whether a cursor still leads exactly behind its record: also if fewer than a page were added or removed. */
  #leadsExactly(taken: Taken): boolean {
    const { service } = this.#world;
    if (this.#isUnchanged(taken)) return true;
    const changed = this.#changesSince(taken).map((change) =>
      change.do === 'insert' || change.do === 'remove' ? change.count : Infinity,
    );
    const areFew = changed.reduce((sum, count) => sum + count, 0) < this.#pageLimit;
    const isFound = areFew && service.sizing === 'exact' && !this.#isOffset(taken);
    return isFound && service.shown.includes(taken.record);
  }

  #isOffset(taken: Taken): boolean {
    const { offset, size } = positionOf(taken);
    return this.#world.service.traits.kind === 'position' && offset === size - 1;
  }

  #hasMoved(taken: Taken): boolean {
    return this.#changesSince(taken).some((change) => change.do === 'move');
  }

  get #pageLimit(): number {
    const { service, list } = this.#world;
    return Math.min(service.limit, service.accepts, list.size.limit);
  }

  get #hasSmallPages(): boolean {
    return this.#pageLimit < SMALL || this.#world.service.sizing === 'single';
  }
}

function positionOf({ cursor }: Taken): Position {
  return decodeCursor('letters', cursor)!;
}

function hash(serial: number): number {
  return (Math.imul(serial + 1, 0x9e3779b1) >>> 8) & 0xffff;
}
