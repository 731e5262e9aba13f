import type { DatabaseSync } from 'node:sqlite';

/** Durable when it returns; undone when it throws. */
export function inTransaction<T>(database: DatabaseSync, work: () => T): T {
  database.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    undo(database);
    throw error;
  }
}

/** What is read within is of one moment. */
export function inOneView<T>(database: DatabaseSync, read: () => T): T {
  if (database.isTransaction) return read();
  database.exec('BEGIN');
  try {
    return read();
  } finally {
    undo(database);
  }
}

/** A failed COMMIT may have rolled back already; and a ROLLBACK that fails must not hide the cause. */
function undo(database: DatabaseSync): void {
  try {
    if (database.isTransaction) database.exec('ROLLBACK');
  } catch {
    // The next one who opens the file rolls it back.
  }
}
