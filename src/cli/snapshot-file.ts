import { readSnapshot } from '../schema/snapshot.ts';
import { CommandError, type Terminal } from './terminal.ts';

/** Reads the schema snapshot as SDL, and makes sure of it before anything else is touched. */
export function readSnapshotFile(path: string, { readFile }: Terminal): string {
  const sdl = read(path, readFile);
  try {
    readSnapshot(sdl, path);
    return sdl;
  } catch (error) {
    throw new CommandError((error as Error).message, 2);
  }
}

function read(path: string, readFile: Terminal['readFile']): string {
  try {
    return readFile(path);
  } catch (error) {
    const { code } = error as { code?: string };
    throw new CommandError(
      `The schema snapshot cannot be read (${path}: ${code ?? 'unknown error'}). Set RECRUITING_SCHEMA to the file that holds it.`,
      2,
    );
  }
}
