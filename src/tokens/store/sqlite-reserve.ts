import { existsSync, statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { inTransaction } from './sqlite-transaction.ts';

const BYTES = 256 * 1024;
const PAGES = 64;

/**
 * Makes room in the file and in its journal, so that claims and saves succeed on a disk that is full: a large
 * row that is written, changed and deleted leaves its pages behind for others.
 *
 * @throws when the disk is full already
 */
export function reserve(database: DatabaseSync, path: string): void {
  if (isReserved(database, path)) return;
  inTransaction(database, () => {
    database.exec('CREATE TABLE IF NOT EXISTS reserve (room BLOB)');
    if (database.prepare('SELECT 1 FROM reserve').get()) return;
    database.prepare('INSERT INTO reserve VALUES (zeroblob(?))').run(BYTES);
  });
  inTransaction(database, () => {
    // Another process may have done the rest meanwhile.
    if (!database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'reserve'").get()) return;
    // Only pages that held something are copied to the journal before they change.
    database.prepare('UPDATE reserve SET room = randomblob(?)').run(BYTES);
    database.exec('DROP TABLE reserve');
  });
}

function isReserved(database: DatabaseSync, path: string): boolean {
  const free = database.prepare('PRAGMA freelist_count').get()?.['freelist_count'] as number;
  const journal = `${path}-journal`;
  return free >= PAGES && existsSync(journal) && statSync(journal).size >= BYTES;
}
