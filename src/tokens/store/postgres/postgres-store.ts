import type { Clock } from '../../../clock.ts';
import { documentOf, OLD_PROCESS } from '../first-layout.ts';
import { SealError, type Sealer } from '../seal.ts';
import * as rules from '../token-document.ts';
import {
  newDocument,
  openDocument,
  sealDocument,
  type Present,
  type TokenDocument,
} from '../token-document.ts';
import {
  StoreNewerError,
  StoreUnavailableError,
  StoreUnreadableError,
  type StoreLayout,
  type TokenStore,
} from '../token-store.ts';
import {
  connectPostgres,
  FIRST_TABLES,
  LAYOUT,
  TABLES,
  type Database,
  type Run,
} from './connection.ts';

export interface PostgresStore extends TokenStore {
  /**
   * Creates what is missing: tables, the row with the layout, an empty document. Nothing is removed.
   *
   * @returns whether anything was missing
   */
  completeTables(): Promise<boolean>;
  /** Renames the tables, so that they can still be inspected, and creates new ones. */
  replaceTables(): Promise<void>;
}

interface PostgresOptions {
  readonly sealer: Sealer;
  /** For waiting, for the wall time of this machine, and for the length of claims. */
  readonly clock: Clock;
  /** Creates no tables: a missing store counts as empty. */
  readonly readOnly?: boolean;
  readonly connect?: (url: string, clock: Clock) => Database;
}

/**
 * A store that the replicas on several machines share. All writers take turns at one row, so that each call is one short
 * transaction; the claim in the document is the lock of an exchange. Nothing is kept in a session, so that a transaction
 * pooler can be between.
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
  const isOver = rules.createClaimEnds(clock.elapsed);
  let ready: Promise<boolean> | undefined;
  /** The era of the store when it was last read, and when the other processes were asked. */
  const eras: { read?: unknown; announced?: unknown } = {};
  let lastLayout: StoreLayout | undefined;

  return {
    description,
    notices: noticesOn(url),
    behind: 'failover',
    get layout() {
      return lastLayout;
    },
    read: () => view(rules.readStored, null),
    import: (imported) =>
      change((document, present) => rules.importSet(document, present, imported)),
    withdraw: (set) => change((document) => rules.withdrawSet(document, set)),
    claim: (claim) =>
      twice(() =>
        change((document, present, era) =>
          eras.announced !== undefined && era !== eras.announced
            ? undefined
            : rules.claimSet(document, present, claim),
        ),
      ),
    askOthers: async () => {
      if (eras.read === eras.announced) return false;
      eras.announced = await twice(() =>
        database.transaction('write', async (run) => {
          const { era } = await checkLayout(run);
          await run('announce');
          return era;
        }),
      );
      return true;
    },
    endAttempt: (attempt, ending) =>
      twice(() => change((document) => rules.endAttempt(document, attempt, ending))),
    save: (saved) =>
      twice(() =>
        change((document, present) => rules.savePair(document, present, saved, clock.now())),
      ),
    holds: (saved) => view((document) => rules.holdsPair(document, saved), false),
    history: (limit) => view((document) => rules.historyIn(document, limit), []),
    moveOut: (move) =>
      twice(() => change((document, present) => rules.moveOut(document, present, move))),
    moveBack: (to) => twice(() => change((document) => rules.moveBack(document, to))),
    moveIn: (moved) =>
      twice(() =>
        change((document, present) => rules.moveIn(document, present, moved, description)),
      ),
    watch: (onChange) => database.listen(onChange),
    completeTables: () =>
      remake(async (run) => {
        const names = await tableNames(run);
        const missing = missingIn(names);
        if (missing.length > 0 && FIRST_TABLES.some((name) => names.includes(name))) {
          throw new StoreUnreadableError(OLD_DAMAGE);
        }
        if (missing.length > 0) await run('createTables');
        const isFilled = await fillTables(run);
        return missing.length > 0 || isFilled;
      }),
    replaceTables: () =>
      remake(async (run) => {
        await run('renameTables');
        await run('createTables');
        await fillTables(run);
      }),
    close: () => database.close(),
  };

  function view<T>(
    read: (document: TokenDocument, present: Present) => T,
    ifMissing: T,
  ): Promise<T> {
    return twice(async () => {
      try {
        if (!(await prepared())) return ifMissing;
        return await database.transaction('read', async (run) => {
          const { layout } = await checkLayout(run);
          const { document, present } = await readDocument(run, layout);
          return read(document, present);
        });
      } catch (error) {
        throw asUnreadable(error);
      }
    });
  }

  async function change<T>(
    work: (document: TokenDocument, present: Present, era: unknown) => T,
  ): Promise<T> {
    if (!(await prepared())) throw new Error('the token store has no tables yet');
    return database.transaction('write', async (run) => {
      const { era } = await lockStore(run);
      const { document, present } = await readDocument(run, LAYOUT);
      const before = JSON.stringify(document);
      const result = work(document, present, era);
      if (JSON.stringify(document) !== before) {
        await run('writeDocument', [sealDocument(document, sealer)]);
        await run('announce');
      }
      return result;
    });
  }

  /** From here to the end of the transaction, no other session writes. */
  async function lockStore(run: Run): Promise<{ era: unknown }> {
    // Without that row, writers would not take turns.
    const [locked] = await run('lockStore');
    if (!locked) throw new StoreUnreadableError(EMPTIED);
    if (locked['layout'] === 1) await replaceFirstLayout(run);
    else checkVersion(locked);
    return { era: (eras.read = locked['era']) };
  }

  /**
   * Converts a store of layout 1. From then on, processes of an older version can neither claim nor save: they
   * keep their pair in memory and in the rescue file.
   */
  async function replaceFirstLayout(run: Run): Promise<void> {
    const { document, present } = await readDocument(run, 1);
    if (document.sets.some(({ claim }) => claim !== null && present.isLive(claim))) {
      throw new StoreUnavailableError(OLD_PROCESS);
    }
    await run('createTables');
    if ((await run('findDocument')).length > 0) throw new StoreUnreadableError(TWO_STORES);
    await run('writeDocument', [sealDocument(document, sealer)]);
    await run('dropFirstTables');
    await run('renewLayout');
  }

  async function readDocument(run: Run, layout: unknown) {
    const isFirst = layout === 1;
    const [row] = await run(isFirst ? 'readFirstRings' : 'readDocument');
    if (!row) throw new StoreUnreadableError(EMPTIED);
    const document = isFirst
      ? documentOf(
          {
            rings: await run('readFirstRings'),
            sets: await run('readFirstSets'),
            pairs: await run('readFirstPairs'),
            attempts: await run('readFirstAttempts'),
            fingerprints: await run('readFirstFingerprints'),
          },
          sealer,
        )
      : openDocument(row['document'] as string, sealer);
    const now = row['now'] as number;
    const present: Present = {
      now,
      lock: null,
      isLive: (claim) => !claim.ended && !isOver(claim, now),
      // A claim may have been lost with the server that had it.
      isExclusive: () => false,
    };
    return { document, present, sealed: row['document'] };
  }

  /** Whether the tables exist. A store that may be written creates them at its first use. */
  async function prepared(): Promise<boolean> {
    ready ??= prepare();
    try {
      const exists = await ready;
      if (!exists) ready = undefined;
      return exists;
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
      await lockStore(run);
      await sealAnew(run);
    });
    return true;
  }

  /** Encrypts the document with the newest key, unless an exchange is under way: its process may not have that key. */
  async function sealAnew(run: Run): Promise<void> {
    const { document, present, sealed } = await readDocument(run, LAYOUT);
    const isUnderWay = document.sets.some(({ claim }) => claim && present.isLive(claim));
    if (isUnderWay || sealer.isCurrent(sealed as string)) return;
    await run('writeDocument', [sealDocument(document, sealer)]);
  }

  async function checkLayout(run: Run): Promise<{ layout: unknown; era: unknown }> {
    const [row] = await run('readLayout');
    if (row === undefined) throw new StoreUnreadableError(EMPTIED);
    if (row['standby'] === true) {
      throw new StoreUnavailableError(
        'the database server is a standby, which may lag behind: TOKEN_STORE has to name the primary',
      );
    }
    if (row['layout'] !== 1) checkVersion(row);
    const now = row['layout'] as number;
    lastLayout = { found: lastLayout?.found ?? now, now };
    return { layout: now, era: (eras.read = row['era']) };
  }

  async function remake<T>(work: (run: Run) => Promise<T>): Promise<T> {
    ready = undefined;
    return database
      .transaction('write', async (run) => {
        await run('lockCreation');
        const names = await tableNames(run);
        const [row] = names.includes(TABLES[0]) ? await run('readLayout') : [];
        if (row && row['layout'] !== 1) checkVersion(row);
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
    const hasDocument = (await run('findDocument')).length > 0;
    if (!hasDocument) await run('writeDocument', [sealDocument(newDocument(), sealer)]);
    return !hasLayout || !hasDocument;
  }
}

/**
 * Whether there is a store. Tables that are all empty do not count: there is nothing in them that could be lost.
 *
 * @throws StoreUnreadableError if only some of its tables exist
 */
async function hasStore(run: Run): Promise<boolean> {
  const names = await tableNames(run);
  if (names.length === 0) return false;
  const [row] = names.includes(TABLES[0]) ? await run('readLayout') : [];
  if (row?.['layout'] === 1) return true;
  const missing = missingIn(names);
  if (missing.length > 0) {
    throw new StoreUnreadableError(`tables of it are missing: ${missing.join(', ')}`);
  }
  return row !== undefined || (await run('findDocument')).length > 0;
}

async function tableNames(run: Run): Promise<unknown[]> {
  return (await run('findTables')).map(({ tablename }) => tablename);
}

function missingIn(names: readonly unknown[]): string[] {
  return TABLES.filter((name) => !names.includes(name));
}

const EMPTIED = 'one of its tables was emptied';
const TWO_STORES = 'it has tables of two versions: an older gateway made new ones beside it';
const OLD_DAMAGE =
  'its tables are those of an older version, and damaged: run `tokens recover` of that version first';

/** Wraps an error of a database that has answered: retrying does not help. */
function asUnreadable(error: unknown): unknown {
  const isKnown =
    error instanceof StoreUnavailableError ||
    error instanceof SealError ||
    error instanceof StoreUnreadableError;
  return isKnown ? error : new StoreUnreadableError((error as Error).message, { cause: error });
}

function checkVersion({ layout }: Record<string, unknown>): void {
  if (layout !== LAYOUT) throw new StoreNewerError(layout);
}

async function twice<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof StoreUnavailableError)) throw error;
    return call();
  }
}

/** Describes a store without its password. The role and `options` decide in which schema the tables are. */
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
