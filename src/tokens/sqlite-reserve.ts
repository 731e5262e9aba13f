import { existsSync, statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';

const BYTES = 256 * 1024;
const PAGES = 64;

/**
 * Makes room in the file and in its journal, so that marks and saves succeed on a disk that is full: a large
 * row that is written, changed and deleted leaves its pages behind for others.
 *
 * @throws when the disk is full already
 */
export function reserve(database: DatabaseSync, path: string): void {
  if (isReserved(database, path)) return;
  database.exec('CREATE TABLE IF NOT EXISTS reserve (room BLOB)');
  try {
    database.prepare('INSERT INTO reserve VALUES (zeroblob(?))').run(BYTES);
    // Only pages that held something are copied to the journal before they change.
    database.prepare('UPDATE reserve SET room = randomblob(?)').run(BYTES);
  } finally {
    database.exec('DROP TABLE reserve');
  }
}

function isReserved(database: DatabaseSync, path: string): boolean {
  const free = database.prepare('PRAGMA freelist_count').get()?.['freelist_count'] as number;
  const journal = `${path}-journal`;
  return free >= PAGES && existsSync(journal) && statSync(journal).size >= BYTES;
}
