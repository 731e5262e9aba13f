import { statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until an export has written records to this file; half a second at most, as for a compressed one. */
export async function whenWritten(file: string): Promise<void> {
  for (let tries = 0; tries < 50; tries += 1) {
    if ((statSync(`${file}.part`, { throwIfNoEntry: false })?.size ?? 0) > 0) break;
    await sleep(10);
  }
  // Waits until the export has also saved its state.
  await sleep(20);
}
