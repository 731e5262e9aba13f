import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
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
type Unsaved =
  | { readonly path: string; readonly received: State }
  | { readonly path: string; readonly why: string };

/** @param folder on a disk that outlives the process, such as that of the SQLite store */
export function emergencyIn(folder: string, sealer: Sealer): Emergency {
  const pathOf = ({ id, generation }: Pick<State, 'id' | 'generation'>) =>
    join(folder, `unsaved-${id}-${generation}.json`);
  return {
    pathOf,
    put: (received) => {
      const path = pathOf(received);
      try {
        mkdirSync(folder, { recursive: true, mode: 0o700 });
        // A crash leaves either the whole file or none of this name.
        writeFileSync(`${path}.part`, sealer.seal(received), { mode: 0o600, flush: true });
        renameSync(`${path}.part`, path);
        return true;
      } catch {
        return false;
      }
    },
    read: () => filesIn(folder).flatMap((file) => open(join(folder, file), sealer) ?? []),
    remove: (path) => {
      try {
        unlinkSync(path);
      } catch {
        // It was never written, or was removed by another process that saved the same pair.
      }
    },
  };
}

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((file) => /^unsaved-[\w-]+\.json$/.test(file));
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === 'ENOENT') return [];
    const message = `the folder of its emergency files, ${folder}, cannot be read (${code})`;
    throw new StoreUnavailable(message, { cause: error });
  }
}

function open(path: string, sealer: Sealer): Unsaved | undefined {
  try {
    return { path, received: sealer.open(readFileSync(path, 'utf8')) };
  } catch (error) {
    const { code, message: why } = error as Error & { code?: string };
    // Another process of this folder has saved its pair since the folder was listed.
    return code === 'ENOENT' ? undefined : { path, why };
  }
}
