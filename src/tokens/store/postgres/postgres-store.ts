import type { Clock } from '../../../clock.ts';
import type { PageLedger } from '../../../page-ledger.ts';
import { createClaimEnds } from '../claim-ends.ts';
import { SealError, type Sealer } from '../seal.ts';
import * as rules from '../rules.ts';
import type { Rows, RowWriter } from '../rows.ts';
import {
  StoreUnavailableError,
  StoreUnreadableError,
  type HistoryEntry,
  type TokenStore,
} from '../token-store.ts';
import { connectPostgres, type Database, type Run } from './connection.ts';
import { createPostgresLedger, type LedgerOptions } from './postgres-ledger.ts';
import { createRowWriter, newRing, readRows, resealRows, type Wanted } from './postgres-rows.ts';
import { LAYOUT, TABLES } from './statements.ts';

/** The store, and on the same connections the pages of callers. */
export interface PostgresStore extends TokenStore {
  ledger(options: LedgerOptions): PageLedger;
  /**
   * Makes tables that are missing, the row with the layout, and the key of fingerprints, and moves heads forward that
   * were moved back. Nothing is removed.
   *
   * @returns whether anything was wrong
   */
  completeTables(): Promise<boolean>;
  /** Renames the tables, so that what they hold stays for people to look at, and makes new ones. */
  replaceTables(): Promise<void>;
}

export interface PostgresOptions {
  readonly sealer: Sealer;
  /** For waiting, for the wall time of this machine, and for the length of claims. */
  readonly clock: Clock;
  /** Makes no tables: a store that is not there is an empty one. */
  readonly readOnly?: boolean;
  readonly connect?: (url: string, clock: Clock) => Database;
}

/**
 * A store that the replicas on several machines share. All writers take turns at one row, so that each call is one short
 * transaction; the claim in the row of a set is the lock of an exchange. Nothing is kept in a session, so that a
 * transaction pooler can be between.
 *
 * A call whose connection ends is repeated once, on another connection: its transaction may have been committed, and
 * then the repeated call finds that.
 */
export function openPostgresStore(
  url: string,
  { sealer, clock, readOnly = false, connect = connectPostgres }: PostgresOptions,
): PostgresStore {
  const database = connect(url, clock);
  const description = describePostgres(url);
  const reading = { sealer, claimEnds: createClaimEnds(clock.elapsed) };
  let ready: Promise<boolean> | undefined;
  /** Of the store as it was last read, and as it was when the others were asked. */
  const eras: { read?: unknown; asked?: unknown } = {};

  return {
    description,
    notices: noticesOn(url),
    behind: 'failover',
    // The fingerprints are looked at too: a pair can be saved only where they can be read.
    read: () => view({ token: '' }, rules.readStored, null),
    import: (imported) =>
      change({ token: imported.pair.refreshToken }, (rows, write) =>
        rules.importSet(rows, write, imported),
      ),
    withdraw: (set) => change({}, (rows, write) => rules.withdrawSet(rows, write, set)),
    claim: (claim) =>
      twice(() =>
        change({ attempt: claim.attempt, token: '' }, (rows, write, era) =>
          eras.asked !== undefined && era !== eras.asked
            ? undefined
            : rules.claimSet(rows, write, claim),
        ),
      ),
    askOthers: async () => {
      if (eras.read === eras.asked) return false;
      eras.asked = await twice(() =>
        database.transaction('write', async (run) => {
          const era = await checkLayout(run);
          await run('announce');
          return era;
        }),
      );
      return true;
    },
    endAttempt: (attempt, ending) =>
      twice(() =>
        change({ attempt }, (rows, write) => rules.endAttempt(rows, write, attempt, ending)),
      ),
    save: (saved) =>
      twice(() =>
        change({ token: saved.pair.refreshToken, attempt: saved.attempt }, (rows, write) =>
          rules.savePair(rows, write, saved, clock.now()),
        ),
      ),
    holds: (saved) =>
      view({ token: saved.pair.refreshToken }, (rows) => rules.holdsPair(rows, saved), false),
    history: async (limit) => {
      const entries = await twice(async () =>
        (await prepared())
          ? database.transaction('read', (run) => run('readHistory', [limit]))
          : [],
      );
      return entries.map(entryOf);
    },
    moveOut: (move) =>
      twice(() => change({ rings: true }, (rows, write) => rules.moveOut(rows, write, move))),
    moveBack: (to) => twice(() => change({}, (rows, write) => rules.moveBack(rows, write, to))),
    moveIn: (moved) =>
      twice(() =>
        change({ token: moved.pair.refreshToken, rings: true }, (rows, write) =>
          rules.moveIn(rows, write, moved, description),
        ),
      ),
    watch: (onChange) => database.listen(onChange),
    ledger: (options) => createPostgresLedger(database, options),
    completeTables: () =>
      remake(async (run) => {
        const missing = TABLES.length - (await run('findTables')).length;
        if (missing > 0) await run('createTables');
        const isFilled = await fillTables(run);
        const restored = await run('restoreHeads');
        return missing > 0 || isFilled || restored.length > 0;
      }),
    replaceTables: () =>
      remake(async (run) => {
        await run('renameTables');
        await run('createTables');
        await fillTables(run);
      }),
    close: () => database.close(),
  };

  function view<T>(wanted: Wanted, read: (rows: Rows) => T, ofNothing: T): Promise<T> {
    return twice(async () => {
      try {
        if (!(await prepared())) return ofNothing;
        return await database.transaction('read', async (run) => {
          await checkLayout(run);
          return read(await readRows(run, reading, wanted));
        });
      } catch (error) {
        throw asUnreadable(error);
      }
    });
  }

  async function change<T>(
    wanted: Wanted,
    work: (rows: Rows, write: RowWriter, era: unknown) => T,
  ): Promise<T> {
    if (!(await prepared())) throw new Error('the token store has no tables yet');
    return database.transaction('write', async (run) => {
      // Without that row, writers would not take turns.
      const [locked] = await run('lockStore');
      if (!locked) throw new StoreUnreadableError(EMPTIED);
      checkVersion(locked);
      eras.read = locked['era'];
      const rows = await readRows(run, reading, wanted);
      const { write, flush } = createRowWriter(run, sealer, rows);
      const result = work(rows, write, locked['era']);
      if (await flush()) await run('announce');
      return result;
    });
  }

  /** Whether the tables are there. They are made when the store is first used to be written. */
  async function prepared(): Promise<boolean> {
    ready ??= prepare();
    try {
      const isThere = await ready;
      if (!isThere) ready = undefined;
      return isThere;
    } catch (error) {
      ready = undefined;
      throw error;
    }
  }

  async function prepare(): Promise<boolean> {
    if (readOnly) return database.transaction('read', hasStore);
    await database.transaction('write', async (run) => {
      await run('lockCreation');
      if (!(await hasStore(run))) {
        await run('createTables');
        await fillTables(run);
      }
      await checkLayout(run);
      await run('lockStore');
      await resealRows(run, reading);
    });
    return true;
  }

  /** Returns the era. */
  async function checkLayout(run: Run): Promise<unknown> {
    const [row] = await run('readLayout');
    if (row === undefined) throw new StoreUnreadableError(EMPTIED);
    if (row['standby'] === true) {
      throw new StoreUnavailableError(
        'the database server is a standby, which may lag behind: TOKEN_STORE has to name the primary',
      );
    }
    checkVersion(row);
    return (eras.read = row['era']);
  }

  async function remake<T>(work: (run: Run) => Promise<T>): Promise<T> {
    ready = undefined;
    return database
      .transaction('write', async (run) => {
        await run('lockCreation');
        const isWritten = (await run('findTables')).length === TABLES.length;
        const [row] = isWritten ? await run('readLayout') : [];
        if (row) checkVersion(row);
        return work(run);
      })
      .catch((error: unknown) => {
        throw asUnreadable(error);
      });
  }

  /** @returns whether anything was missing */
  async function fillTables(run: Run): Promise<boolean> {
    const hasLayout = (await run('readLayout')).length > 0;
    if (!hasLayout) await run('insertLayout');
    const hasRing = (await run('readRings')).length > 0;
    if (!hasRing) await newRing(run, sealer);
    return !hasLayout || !hasRing;
  }
}

/**
 * Whether there is a store. Tables that are all empty are none: nothing is left in them that could be lost.
 *
 * @throws StoreUnreadableError if only some of its tables are there
 */
async function hasStore(run: Run): Promise<boolean> {
  const tables = await run('findTables');
  if (tables.length === 0) return false;
  if (tables.length < TABLES.length) {
    const missing = TABLES.filter((name) => !tables.some((row) => row['tablename'] === name));
    throw new StoreUnreadableError(`tables of it are missing: ${missing.join(', ')}`);
  }
  return (await run('readLayout')).length > 0 || (await run('findRows')).length > 0;
}

const EMPTIED = 'its table recruiting_token_store was emptied';

/** The database has answered: what is wrong does not pass by itself. */
function asUnreadable(error: unknown): unknown {
  const isKnown =
    error instanceof StoreUnavailableError ||
    error instanceof SealError ||
    error instanceof StoreUnreadableError;
  return isKnown ? error : new StoreUnreadableError((error as Error).message, { cause: error });
}

function checkVersion({ layout }: Record<string, unknown>): void {
  if (layout === LAYOUT) return;
  throw new Error(`it was written by a newer version (layout ${String(layout)})`);
}

async function twice<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof StoreUnavailableError)) throw error;
    return call();
  }
}

function entryOf(row: Record<string, unknown>): HistoryEntry {
  const { at, generation, attempt, outcome, latency_ms: latencyMs, replica } = row;
  return { at, generation, attempt, outcome, latencyMs, replica } as HistoryEntry;
}

/** Without the password. The role, and `options`, decide in which schema the tables are. */
export function describePostgres(url: string): string {
  const { username, host, pathname, searchParams } = new URL(url);
  const options = searchParams.get('options');
  return `postgres://${username && `${username}@`}${host}${pathname}${options ? ` (${options})` : ''}`;
}

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\]|)$/;

function noticesOn(url: string): string[] {
  const { hostname, searchParams } = new URL(url);
  const isPlain = [null, 'disable'].includes(searchParams.get('sslmode'));
  if (!isPlain || LOOPBACK.test(hostname)) return [];
  return [
    'The connection to the token store is not encrypted. Add ?sslmode=verify-full to TOKEN_STORE, unless its network is trusted.',
  ];
}
