import type { Database } from '../../../src/tokens/store/postgres/connection.ts';
import { openPostgresStore } from '../../../src/tokens/store/postgres/postgres-store.ts';
import { createSealer } from '../../../src/tokens/store/seal.ts';
import type { TokenStore } from '../../../src/tokens/store/token-store.ts';
import type { TokenDocument } from '../../../src/tokens/store/token-document.ts';
import { documentIn, execute, NO_TABLES, withDocument, type Tables } from './postgres-tables.ts';

/** The state that all handles share: that of a database server. */
export interface TimedDatabase {
  /** A connection of one process. */
  open(): TokenStore;
  /** As a process of another version, or a person, changes what the store holds. */
  alter(change: (document: TokenDocument) => void): void;
}

/**
 * The PostgreSQL store, over tables in memory: a claim is a lock with a deadline by the clock of the server, and whether
 * the process that wrote it lives is unknown.
 *
 * @param now the server's clock, ms
 * @param elapsed the clock of all processes that never jumps, ms
 * @param wall the wall clock of all processes, ms
 */
export function timedDatabase(now: () => number, elapsed = now, wall = now): TimedDatabase {
  let committed = NO_TABLES;
  let turn: Promise<unknown> = Promise.resolve();
  const clock = { now: wall, elapsed, sleep: async () => {} };

  const connect = (): Database => ({
    transaction: (kind, work) => {
      const inTables = (tables: Tables) =>
        work(async (name, values = []) => execute(name, values, tables, now()));
      if (kind === 'read') return inTables(committed);
      // Writers take turns.
      const done = turn.then(async () => {
        const tables = { ...committed };
        const result = await inTables(tables);
        committed = tables;
        return result;
      });
      turn = done.catch(() => {});
      return done;
    },
    listen: () => {},
    close: async () => {},
  });
  const url = 'postgres://database/tokens';
  return {
    open: () => openPostgresStore(url, { sealer: createSealer([]), clock, connect }),
    alter: (change) => {
      const document = documentIn(committed)!;
      change(document);
      committed = withDocument(committed, document);
    },
  };
}
