import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { Sealer } from './seal.ts';
import type { State } from './state.ts';
import { StoreUnavailable } from './store.ts';

/**
 * The folder for pairs that were received and are not in the store yet, each in a file of its own. Whoever has saved what
 * a file holds removes it, and nobody removes another one.
 */
export interface Emergency {
  /** Never throws: the pair is in memory as well, and is saved again. @returns whether the file was written */
  put(received: State): boolean;
  /** Returns what the folder holds, of this store and of others. */
  read(): readonly Unsaved[];
  /** Never throws: a file that stays is saved again by the next start, which changes nothing. */
  remove(path: string): void;
  /** The path of the file of a pair. */
  pathOf(received: Pick<State, 'id' | 'generation'>): string;
}

/** For tokens that need not outlive their process. */
export const NO_EMERGENCY: Emergency = {
  put: () => false,
  read: () => [],
  remove: () => {},
  pathOf: () => '',
};

/** What a file holds. If it cannot be opened, it may be the newest pair, so nothing may be sent. */
export type Unsaved =
  | { readonly path: string; readonly received: State }
  | { readonly path: string; readonly why: string };

const FILE = /^unsaved-[\w-]+\.json$/;

/** @param folder on a disk that outlives the process, such as that of the SQLite store */
export function emergencyIn(folder: string, sealer: Sealer): Emergency {
  const pathOf = ({ id, generation }: Pick<State, 'id' | 'generation'>) =>
    join(folder, `unsaved-${id}-${generation}.json`);
  return {
    pathOf,
    put: (received) => {
      try {
        write(pathOf(received), sealer.seal(JSON.stringify(received)));
        return true;
      } catch {
        return false;
      }
    },
    read: () => filesIn(folder).flatMap((file) => open(join(folder, file), sealer) ?? []),
    remove: removeFile,
  };
}

/** A crash leaves either the whole file or none of this name. */
function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const part = `${path}.part`;
  writeFileSync(part, text, { mode: 0o600, flush: true });
  renameSync(part, path);
}

function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It was never written, or was removed by another process that saved the same pair.
  }
}

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((file) => FILE.test(file));
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === 'ENOENT') return [];
    throw new StoreUnavailable(
      `the folder of its emergency files, ${folder}, cannot be read (${code})`,
      { cause: error },
    );
  }
}

function open(path: string, sealer: Sealer): Unsaved | undefined {
  try {
    const text = sealer.open(readFileSync(path, 'utf8'));
    return { path, received: JSON.parse(text) as State };
  } catch (error) {
    // Another process of this folder has saved its pair since the folder was listed.
    if ((error as { code?: string }).code === 'ENOENT') return undefined;
    // The message of JSON.parse would quote the text.
    const why = error instanceof SyntaxError ? 'it is damaged' : (error as Error).message;
    return { path, why };
  }
}
