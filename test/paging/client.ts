import fc from 'fast-check';
import { expect } from 'vitest';
import { codeOf } from '../../src/errors.ts';
import type { ConnectionArguments } from '../../src/paging/connection.ts';
import { decodeCursor } from '../../src/paging/cursor.ts';
import { comings, KINDS, moves, SIZINGS, type Change, type Traits } from './model-service.ts';
import { World } from './world.ts';

export const LIMIT = 12;
/** Twenty pages of fewer records may not reach to the start of the lists here. */
const SMALL = 8;

/*
 * Any history of a list, compared with Relay's GraphQL Cursor Connections Specification,
 * https://relay.dev/graphql/connections.htm, sections 4.4 and 5.1. After changes of the list, a cursor may lead to
 * records that it passed already; it never skips one.
 */

const fewRecords = fc.integer({ min: 1, max: 3 });
export const anyCount = fc.oneof(
  { weight: 3, arbitrary: fewRecords },
  fc.integer({ min: 1, max: 30 }),
);
export const sizings = fc.constantFrom(...SIZINGS);
const read = fc.record({
  do: fc.constant('read' as const),
  direction: fc.constantFrom('first' as const, 'last' as const, null),
  count: fc.oneof(fc.constantFrom(0, 1, 2, 11, 12, 13), fc.nat(80)),
  /** Which of the cursors that the client ever got. */
  after: fc.option(fc.nat(999)),
  before: fc.option(fc.nat(999)),
});
const newSize = fc.record({
  do: fc.constant('size' as const),
  sizing: sizings,
  limit: fc.integer({ min: 1, max: 30 }),
});
const step = fc.oneof(
  { weight: 7, arbitrary: read },
  { weight: 2, arbitrary: comings(fewRecords) },
  { weight: 1, arbitrary: comings(anyCount) },
  { weight: 1, arbitrary: moves },
  { weight: 1, arbitrary: newSize },
  { weight: 1, arbitrary: fc.constant({ do: 'walk' as const }) },
);
export const histories = fc.record({
  kind: fc.constantFrom(...KINDS),
  sizing: sizings,
  haveIds: fc.constantFrom(true, true, true, false),
  length: fc.oneof(fc.constantFrom(0, 1, 2, 11, 12, 13, 24), fc.nat(90)),
  /** Records of the pages that the client reads first. */
  readBy: fc.oneof(fc.constantFrom(3, LIMIT), fc.integer({ min: 1, max: 90 })),
  isWalked: fc.boolean(),
  steps: fc.array(step, { minLength: 1, maxLength: 9 }),
});
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;
type Read = Extract<Step, { readonly do: 'read' }>;
type NewSize = Extract<Step, { readonly do: 'size' }>;

/** A cursor that a client has. */
interface Taken {
  readonly cursor: string;
  readonly record: number;
  /** The list as it was then. */
  readonly list: readonly number[];
  /** The number of changes before it. */
  readonly changes: number;
}

/** A client that keeps all cursors that it ever got. */
export class Client {
  readonly world: World;
  readonly taken: Taken[] = [];
  readonly changes: (Change | NewSize)[] = [];

  constructor(length: number, traits: Partial<Traits>) {
    this.world = new World(length, { ...traits, limit: LIMIT });
  }

  change(change: Change | NewSize): void {
    this.changes.push(change);
    if (change.do === 'size') Object.assign(this.world.service, change);
    else this.world.service.apply(change);
  }

  /** @returns undefined if it is refused */
  async read(args: ConnectionArguments) {
    const list = this.world.service.shown;
    const page = await this.world.read(args).catch((error: unknown) => {
      const hasNoId = args.before && codeOf(error) === 'BAD_USER_INPUT';
      const isAllowed = codeOf(error) === 'CURSOR_INVALID' || (hasNoId && !this.hasIds);
      if (!isAllowed) throw error;
    });
    if (!page) return undefined;
    const { cursors, ...window } = page;
    if (new Set(cursors).size < cursors.length) throw new Error('Two edges have one cursor.');
    const changes = this.changes.length;
    for (const [at, cursor] of cursors.entries())
      this.taken.push({ cursor, record: window.records[at]!, list, changes });
    return window;
  }

  async readAll(first: number): Promise<void> {
    while (this.taken.length < this.world.service.shown.length)
      await this.read({ first, after: this.taken.at(-1)?.cursor });
  }

  get hasIds(): boolean {
    return this.world.service.idOf(0) !== null;
  }

  isUnchanged(taken: Taken | undefined): boolean {
    return !taken || this.since(taken).every((change) => change.do === 'size');
  }

  since({ changes }: Taken) {
    return this.changes.slice(changes);
  }

  /** Whether a cursor still leads exactly behind its record: also if fewer than a page were added or removed. */
  leadsExactly(taken: Taken): boolean {
    const { service } = this.world;
    if (this.isUnchanged(taken)) return true;
    const changed = this.since(taken).map((change) =>
      change.do === 'insert' || change.do === 'remove' ? change.count : Infinity,
    );
    const areFew = changed.reduce((sum, count) => sum + count, 0) < LIMIT;
    const isFound = areFew && service.sizing === 'exact' && !this.isOffset(taken);
    return isFound && service.shown.includes(taken.record);
  }

  isOffset({ cursor }: Taken): boolean {
    const { offset, size } = decodeCursor('letters', cursor)!;
    return this.world.service.traits.kind === 'position' && offset === size - 1;
  }

  hasMoved(taken: Taken): boolean {
    return this.since(taken).some((change) => change.do === 'move');
  }
}

/** Reads a connection, and compares it with the specification. */
export async function expectWindow(
  client: Client,
  { direction, count, ...ends }: Read,
): Promise<void> {
  const { service, list } = client.world;
  const [after, before] = [ends.after, ends.before].map((choice) =>
    choice === null ? undefined : client.taken[choice % client.taken.length],
  );
  const first = direction === 'first' ? count : null;
  const last = direction === 'last' ? count : null;
  const window = await client.read({ first, last, after: after?.cursor, before: before?.cursor });
  const all = service.shown;
  const hasChanged = !client.isUnchanged(after) || !client.isUnchanged(before);
  // Without ids nothing is found again.
  if (!client.hasIds && (hasChanged || (before && !window))) return;
  if (!window) {
    expect(hasChanged).toBe(true);
    // Twenty pages reach to the start of the list, unless they are small.
    const isFar = service.limit < SMALL || service.sizing === 'single';
    expect(service.traits.kind !== 'key' || isFar).toBe(true);
    // A record that is still there is found.
    if (!after) expect(all).not.toContain(before!.record);
    return;
  }
  const { records, hasNextPage, hasPreviousPage } = window;
  const start = startOf(client, after, records, last);
  // Where it begins is not seen in an empty connection.
  if (start === undefined && (last === null || records.length === 0)) return;
  // Neither is where it ends, in front of a record that is gone.
  if (last === 0 && before && !all.includes(before.record)) return;
  const end = endOf(client, before, start, records, last);
  const between = all.slice(start ?? 0, end);
  if (last === null) {
    const size = first ?? list.size.limit;
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
function startOf(
  client: Client,
  after: Taken | undefined,
  records: readonly number[],
  last: number | null,
) {
  const all = client.world.service.shown;
  if (!after) return 0;
  const own = all.indexOf(after.record) + 1;
  if (client.leadsExactly(after)) return own;
  if (records.length === 0 || records.length === last) return undefined;
  const start = all.indexOf(records[0]!);
  // The service's own cursor of the last record of a page skips what an offset skips.
  if (client.isOffset(after) || client.hasMoved(after)) return start;
  const next = after.list
    .slice(after.list.indexOf(after.record) + 1)
    .find((record) => all.includes(record));
  expect(start).toBeLessThanOrEqual(own || (next === undefined ? all.length : all.indexOf(next)));
  return start;
}

/** Where a connection in front of a record ends: if the record is gone, behind all that preceded it. */
function endOf(
  client: Client,
  before: Taken | undefined,
  start: number | undefined,
  records: readonly number[],
  last: number | null,
): number {
  const all = client.world.service.shown;
  const own = before ? all.indexOf(before.record) : -1;
  const shown = records.length > 0 ? all.indexOf(records.at(-1)!) + 1 : (start ?? 0);
  // In front of `after` it ends nothing.
  if (own >= 0 && start === undefined) return shown === own ? own : all.length;
  if (own >= (start ?? 0)) return own;
  if (!before || own >= 0 || last === null) return all.length;
  const previous = before.list
    .slice(0, before.list.indexOf(before.record))
    .findLast((record) => all.includes(record));
  if (!client.hasMoved(before))
    expect(shown).toBeGreaterThan(previous === undefined ? -1 : all.indexOf(previous));
  return shown;
}
