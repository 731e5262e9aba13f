import { closeSync, fsyncSync, openSync } from 'node:fs';

/** Makes the names of the files in a folder durable: a file that was synced may still lose its new name. */
export function syncFolder(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
