import type { Clock } from '../../../clock.ts';
import type { PageLedger } from '../../../page-ledger.ts';
import { createClaimEnds } from '../claim-ends.ts';
import type { Sealer } from '../seal.ts';
import * as rules from '../rules.ts';
import type { Rows, RowWriter } from '../rows.ts';
import { StoreUnavailableError, type HistoryEntry, type TokenStore } from '../token-store.ts';
import { connectPostgres, type Database, type Run } from './connection.ts';
import { createPostgresLedger, type LedgerOptions } from './postgres-ledger.ts';
import { createRowWriter, newRing, readRows, resealRows, type Wanted } from './postgres-rows.ts';
import { LAYOUT } from './statements.ts';

/** The store, and on the same connections the pages of callers. */
export interface PostgresStore extends TokenStore {
  ledger(options: LedgerOptions): PageLedger;
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
    read: () => view({}, rules.readStored, null),
    import: (imported) =>
      change({ token: imported.pair.refreshToken }, (rows, write) =>
        rules.importSet(rows, write, imported),
      ),
    withdraw: (set) => change({}, (rows, write) => rules.withdrawSet(rows, write, set)),
    claim: (claim) =>
      twice(() =>
        change({ attempt: claim.attempt }, (rows, write, era) =>
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
    close: () => database.close(),
  };

  function view<T>(wanted: Wanted, read: (rows: Rows) => T, ofNothing: T): Promise<T> {
    return twice(async () => {
      if (!(await prepared())) return ofNothing;
      return database.transaction('read', async (run) => {
        await checkLayout(run);
        return read(await readRows(run, reading, wanted));
      });
    });
  }

  async function change<T>(
    wanted: Wanted,
    work: (rows: Rows, write: RowWriter, era: unknown) => T,
  ): Promise<T> {
    if (!(await prepared())) throw new Error('the token store has no tables yet');
    return database.transaction('write', async (run) => {
      const [locked] = await run('lockStore');
      eras.read = locked?.['era'];
      const rows = await readRows(run, reading, wanted);
      const { write, flush } = createRowWriter(run, sealer, rows);
      const result = work(rows, write, locked?.['era']);
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
    const isThere = await database.transaction('read', tablesAreThere);
    if (readOnly) return isThere;
    await database.transaction('write', async (run) => {
      await run('lockCreation');
      if (!(await tablesAreThere(run))) {
        await run('createTables');
        await newRing(run, sealer);
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
    if (row === undefined) throw new Error('its tables were emptied by something else');
    if (row['standby'] === true) {
      throw new StoreUnavailableError(
        'the database server is a standby, which may lag behind: TOKEN_STORE has to name the primary',
      );
    }
    if (row['layout'] !== LAYOUT) {
      throw new Error(`it was written by a newer version (layout ${String(row['layout'])})`);
    }
    return (eras.read = row['era']);
  }
}

async function tablesAreThere(run: Run): Promise<boolean> {
  return (await run('findTables')).length > 0;
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
