import type { Logger } from 'pino';
import {
  openRescueFile,
  saveRescued,
  type RescueFile,
  type RescueFolder,
  type RescueReport,
} from './rescue-file.ts';
import type { NewPair, TokenStore } from './token-store.ts';

/** Where a pair goes that cannot be saved, and what earlier processes left there. */
export interface Rescue {
  /** @throws when it cannot be written */
  put(pair: NewPair): void;
  clear(): void;
  /** Brings into the store what lies in rescue files, and says so in the log. */
  saveInto(store: TokenStore): Promise<RescueReport>;
  close(): Promise<void>;
}

/** Without room for a rescue file it goes on, and says so: the tokens are more needed than their net. */
export function openRescue(folder: RescueFolder, log: Logger): Rescue {
  const file = open();
  const reported = new Set<string>();

  return {
    put: (pair) => {
      if (!file) throw new Error('there is no rescue file');
      file.put(pair);
    },
    clear: () => file?.clear(),
    saveInto: async (store) => {
      const report = await saveRescued(folder, store);
      for (const { generation } of report.saved) {
        log.warn({ generation: generation + 1 }, 'a token pair was saved from a rescue file');
      }
      for (const failure of report.failed.filter(({ path }) => !reported.has(path))) {
        reported.add(failure.path);
        log.error(
          failure,
          'A rescue file could not be saved into the store. It was left as it is.',
        );
      }
      return report;
    },
    close: async () => file?.close(),
  };

  function open(): RescueFile | undefined {
    try {
      return openRescueFile(folder);
    } catch (error) {
      log.warn(
        { err: error, folder: folder.directory },
        'No rescue file can be made, so a token pair that cannot be saved could not be kept either at exit. ' +
          'Give the gateway a folder that it may write with TOKEN_RESCUE_DIR.',
      );
      return undefined;
    }
  }
}
