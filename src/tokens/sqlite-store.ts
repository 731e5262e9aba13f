import { randomUUID } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { openExchangeLock, type ExchangeLock } from './exchange-lock.ts';
import { createSealer, type Sealer } from './seal.ts';
import { inTransaction, openSqliteFile, whyUnwritable, type FileOptions } from './sqlite-file.ts';
import { prepareTables, type SqliteTables } from './sqlite-tables.ts';
import type { StoredTokens, TokenStore } from './token-store.ts';

export interface SqliteOptions extends Omit<FileOptions, 'sealer'> {
  readonly sealer?: Sealer;
}

const HISTORY_KEPT = 1_000;

/**
 * The embedded store: one file, written with `synchronous=FULL`, for any number of processes on one machine.
 * Its mark is guarded by a kernel lock, so that a restart takes over at once from a process that was killed.
 * A lock that is held is never overridden: a process that was stopped keeps it, since an outage can be
 * mended and a lost token cannot.
 *
 * @param path a file (its folder is made, 0700, when missing), or `:memory:`
 * @throws when the file cannot be opened or is not a token store; the file is left as it is
 */
export function openSqliteStore(path: string, options: SqliteOptions = {}): TokenStore {
  const { sealer = createSealer([]) } = options;
  let file = openSqliteFile(path, { ...options, sealer });
  let tables = prepareTables(file.database, sealer);
  let lock: ExchangeLock | undefined;

  const lockPath = path === ':memory:' ? path : `${path}-lock`;
  const theLock = () => (lock ??= openExchangeLock(lockPath));
  // Asynchronous outside, since stores on a network are; the driver itself blocks.
  const transaction = async <T>(
    work: (tables: SqliteTables, database: DatabaseSync) => T,
  ): Promise<T> => {
    makeWritable();
    return inTransaction(file.database, () => work(tables, file.database));
  };

  return {
    description: path === ':memory:' ? 'in memory' : `sqlite:${path}`,
    notices: file.notices,
    read: async () => read(),
    import: ({ baseUrl, pair, at, replica, after }) =>
      transaction(() => {
        const known = tables.knownGeneration(pair.refreshToken);
        const head = read();
        if (known !== undefined) {
          const current = head?.pair.refreshToken === pair.refreshToken;
          return { kind: 'known', generation: known, current };
        }
        if (head?.set !== after?.set || head?.generation !== after?.generation) {
          return { kind: 'overtaken' };
        }
        const generation = tables.newestGeneration() + 1;
        const attempt = randomUUID();
        tables.insertSet({ baseUrl, generation, attempt, pair, at, imported: true });
        tables.insertAttempt({ attempt, generation, at, outcome: 'imported', replica });
        tables.forgetOldSets();
        return { kind: 'imported', stored: read()! };
      }),
    withdraw: (set) => transaction(() => tables.withdraw(set)),
    mark: async ({ set, generation, attempt, at, replica }) => {
      makeWritable();
      if (!(await theLock().take(attempt))) return undefined;
      try {
        const marked = await transaction(() => {
          if (!tables.writeMark({ set, generation, attempt, at })) return false;
          tables.insertAttempt({ attempt, generation, at, outcome: 'begun', replica });
          tables.forgetOldAttempts(HISTORY_KEPT);
          return true;
        });
        if (marked) return { overExpired: false };
        theLock().release(attempt);
        return undefined;
      } catch (error) {
        theLock().release(attempt);
        throw error;
      }
    },
    settle: async (attempt, { outcome, latencyMs }) => {
      try {
        await transaction(() => {
          if (outcome === 'invalid-grant') tables.writeLost(attempt);
          if (outcome !== 'uncertain') tables.clearMark(attempt);
          tables.endAttempt({ attempt, outcome, latencyMs });
        });
      } finally {
        // Also when that failed: the mark that stays says that the exchange is in doubt.
        lock?.release(attempt);
      }
    },
    // While it fails the lock is kept: the pair is in this process, and nobody else may exchange.
    save: async ({ set, generation, attempt, pair, outcome, at, latencyMs }) => {
      const isHead = await transaction(() => {
        const next = { set, generation: generation + 1, attempt, pair, at };
        tables.insertPair(next);
        tables.moveHead({ set, from: generation });
        tables.endAttempt({ attempt, outcome, latencyMs });
        tables.forgetOldPairs(set);
        return tables.firstAttempt(set, generation + 1) === attempt;
      });
      lock?.release(attempt);
      return isHead;
    },
    history: async (limit) => tables.history(limit),
    moveOut: async ({ to, at, replica }) => {
      const attempt = randomUUID();
      makeWritable();
      if (!(await theLock().take(attempt))) throw new Error(UNDER_WAY);
      try {
        return await transaction(() => {
          const head = read();
          checkMovable(head, to);
          if (head.movedTo === null) {
            const { set, generation } = head;
            tables.writeMoved(set, to);
            tables.insertAttempt({ attempt, generation, at, outcome: 'moved-out', replica });
          }
          const { baseUrl, generation, pair, savedAt, imported } = head;
          return { baseUrl, generation, pair, savedAt, imported, fingerprints: tables.rings() };
        });
      } finally {
        theLock().release(attempt);
      }
    },
    moveBack: (to) =>
      transaction(() => {
        const head = read();
        if (head?.movedTo === to) tables.writeMoved(head.set, null);
      }),
    moveIn: ({ baseUrl, generation, pair, savedAt, imported, fingerprints, at, replica }) =>
      transaction(() => {
        const head = read();
        const isInUse = head !== null && !head.lost && head.movedTo === null;
        if (isInUse && head.pair.refreshToken === pair.refreshToken) return;
        if (isInUse) {
          throw new Error(
            `The store (${path}) holds a token set that is in use (generation ${head.generation}). Nothing was moved; choose another store.`,
          );
        }
        const next = Math.max(generation, tables.newestGeneration() + 1);
        const attempt = randomUUID();
        tables.insertSet({ baseUrl, generation: next, attempt, pair, at: savedAt, imported });
        tables.insertAttempt({ attempt, generation: next, at, outcome: 'moved-in', replica });
        tables.addRings(fingerprints);
        tables.forgetOldSets();
      }),
    close: async () => {
      lock?.close();
      file.database.close();
    },
  };

  function read(): StoredTokens | null {
    return tables.read((attempt) => lock?.heldFor === attempt || isLocked());
  }

  /** A store that cannot be written has nobody who exchanges from it. */
  function isLocked(): boolean {
    return file.unwritable === undefined && theLock().isHeld();
  }

  /** A store that could not be written when it was opened may be writable by now. */
  function makeWritable(): void {
    if (file.unwritable === undefined) return;
    const why = whyUnwritable(path);
    if (why !== undefined) throw new Error(`the token store cannot be written (${why})`);
    file.database.close();
    file = openSqliteFile(path, { ...options, sealer });
    tables = prepareTables(file.database, sealer);
  }
}

const UNDER_WAY =
  'An exchange of the refresh token is under way. Nothing was moved; try again when it has ended.';

function checkMovable(head: StoredTokens | null, to: string): asserts head is StoredTokens {
  if (!head) throw new Error('There is no token set to move.');
  if (head.movedTo !== null && head.movedTo !== to) {
    throw new Error(`The token set was moved to ${head.movedTo} before. Nothing was changed.`);
  }
  if (head.lost)
    throw new Error('The token set is lost, so there is nothing to move. Import a new one there.');
  if (head.mark !== null) {
    throw new Error(
      'An exchange of the refresh token is in doubt. Run `tokens recover` first; nothing was moved.',
    );
  }
}
