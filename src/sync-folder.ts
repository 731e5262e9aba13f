import { closeSync, fsyncSync, openSync } from 'node:fs';

/** Makes the names of the files in a folder durable: a synced file may still lose a new name. */
export function syncFolder(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
