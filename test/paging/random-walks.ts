import type { ListWalkOptions } from '../../src/paging/list-walk.ts';
import { codeOf } from '../../src/errors.ts';
import { CursorRefusedError, PageFailedError, ReadPage } from '../../src/paging/page.ts';
import { KINDS, ModelService, SIZINGS, type Change } from './model-service.ts';
import { WalkWorld, type Walked } from './walk-world.ts';

/*
 * Walks lists at random: three kinds of cursors, long and short and empty pages, records without ids, refused sizes and
 * cursors, requests answered in any order. Each list is walked some times, and changes between the walks or during one.
 */

export interface Report {
  walks: number;
  /** Each says how to repeat it. */
  wrong: string[];
}

/** @param seed with the same seed, the walks are the same */
export async function walkAtRandom(walks: number, seed: number): Promise<Report> {
  const report: Report = { walks: 0, wrong: [] };
  for (let list = 0; report.walks < walks; list += 1) {
    await walkOneList(randomNumbers(seed + list), report, `seed ${seed + list}`);
  }
  return report;
}

type Random = (below: number) => number;

async function walkOneList(random: Random, report: Report, name: string): Promise<void> {
  const service = randomService(random);
  const world = new WalkWorld(service, 1 + random(5));
  const rounds = 2 + random(5);
  for (let round = 1; round <= rounds; round += 1) {
    const isChanging = round > 1 && random(3) === 0;
    const before = service.changes;
    const changes = randomChanges(random, isChanging);
    if (!isChanging && round > 1) for (const change of changes) service.apply(change);
    const part = isChanging || round === 1 ? WHOLE : randomPart(random, service);
    const walked = await world.walk(() => random(100), part, {
      changes: isChanging ? changes.map((change) => ({ change, after: random(25) })) : [],
      failure:
        !isChanging && random(8) === 0 ? { after: random(25), answers: 1 + random(9) } : undefined,
    });
    report.walks += 1;
    const flaw = isChanging
      ? flawWhileChanging(service, walked, { before, changes })
      : flawOf(service, part, walked);
    if (flaw) report.wrong.push(`${name}, walk ${round}: ${flaw}`);
  }
}

const WHOLE: ListWalkOptions<number> = { after: null };

function randomPart(random: Random, service: ModelService): ListWalkOptions<number> {
  const records = random(3) === 0 ? 1 + random(60) : undefined;
  const first = Math.min(1 + random(40), service.accepts);
  const after = random(3) === 0 ? service.page(null, first).endCursor : null;
  const start =
    random(4) === 0 ? new ReadPage(after, service.page(after, Math.min(first, 10))) : undefined;
  return { after, records, start };
}

/** Compares a walk with a list that stood still. */
function flawOf(
  service: ModelService,
  part: ListWalkOptions<number>,
  { serials, error }: Walked,
): string | undefined {
  if (error && !(error instanceof PageFailedError)) return `${error.name}: ${error.message}`;
  const shown = service.shownBehind(part.after);
  const twice = repeatedIds(service, shown);
  // Of records with one id in different pages, only one is returned.
  const isExpected = (serial: number) => !twice.has(service.idOf(serial));
  const expected = shown.filter(isExpected);
  const returned = serials.filter(isExpected);
  const isPart = error !== undefined || (part.records ?? Infinity) <= serials.length;
  const compared = isPart ? expected.slice(0, returned.length) : expected;
  if (returned.join() !== compared.join()) {
    return `${JSON.stringify(part)} ${returned.join(' ')} for ${expected.join(' ')}`;
  }
  const ids = new Set(serials.map((serial) => service.idOf(serial)));
  if (!isPart && [...twice].some((id) => !ids.has(id))) return 'no record of a repeated id';
  if (new Set(serials).size < serials.length) return `a record twice: ${serials.join(' ')}`;
  return undefined;
}

function repeatedIds(service: ModelService, shown: readonly number[]): Set<string | null> {
  const ids = shown.map((serial) => service.idOf(serial)).filter((id) => id !== null);
  return new Set(ids.filter((id, at) => ids.indexOf(id) !== at));
}

/** No more may be lost than a walk in sequence can lose: see `mayLose`. */
function flawWhileChanging(
  service: ModelService,
  { serials, error }: Walked,
  { before, changes }: { before: number; changes: readonly Change[] },
): string | undefined {
  const { kind } = service.traits;
  const removed = changes.reduce(
    (sum, each) => sum + (each.do === 'remove' ? each.count : each.do === 'move' ? 1 : 0),
    0,
  );
  if (error) {
    // A cursor that names a record is refused without the record, and leads back where it moved back.
    const isRefusal = error instanceof CursorRefusedError || codeOf(error) === 'DRAIN_STALLED';
    if (isRefusal && kind === 'record' && removed > 0) return undefined;
    return `${error.name}: ${error.message}`;
  }
  const identify = (serial: number) => service.idOf(serial) ?? serial;
  const returned = new Set(serials.map(identify));
  const still = service.stillSince(before);
  const lost = still.filter((serial) => !returned.has(identify(serial))).length;
  const most = mayLose(service, changes, removed);
  if (lost > most) return `${lost} lost, ${most} in sequence, ${JSON.stringify(changes)}`;
  // Records without unique ids are returned again if they move.
  const distinct = new Set(serials);
  const areUnique = repeatedIds(service, [...distinct]).size === 0;
  const haveIds = serials.every((serial) => service.idOf(serial) !== null);
  return haveIds && areUnique && distinct.size < serials.length ? 'a record twice' : undefined;
}

/** The most records that a walk in sequence can lose: an offset passes one record for each that is removed before it. */
function mayLose({ traits }: ModelService, changes: readonly Change[], removed: number): number {
  if (traits.kind === 'key') return 0;
  if (traits.kind === 'position') return removed;
  // A cursor that names a record moves with it.
  return changes.some((change) => change.do === 'move') ? Infinity : 0;
}

function randomService(random: Random): ModelService {
  const sizing = random(2) === 0 ? 'exact' : SIZINGS[random(SIZINGS.length)]!;
  const ids = random(8);
  const hides = random(4) === 0 ? 1 + random(4) : Infinity;
  const limit = random(4) === 0 ? 1 + random(9) : 10 + random(7);
  return new ModelService({
    kind: KINDS[random(3)]!,
    length: random(90),
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
  switch (random(isChanging ? 8 : 9)) {
    case 0:
    case 1:
    case 2:
      return { do: 'insert', at: random(3) === 0 ? 0 : at, count };
    case 3:
    case 4:
    case 5:
      return { do: 'remove', at, count };
    case 8:
      return { do: 'limit', to: 1 + random(16) };
    default:
      return { do: 'move', from: at, to: random(90) };
  }
}

/** Marsaglia's xorshift: the same numbers for the same seed. */
function randomNumbers(seed: number): Random {
  let state = Math.imul(seed + 1, 0x9e3779b1) | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}
