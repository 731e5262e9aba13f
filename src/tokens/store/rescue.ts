import type { Logger } from 'pino';
import {
  openRescueFile,
  saveRescued,
  type RescueFolder,
  type RescueReport,
} from './rescue-file.ts';
import type { NewPair, TokenStore } from './token-store.ts';
import {
  answersTo,
  forgetAnswers,
  openAnswerFiles,
  type KeptAnswer,
  type UnreadAnswer,
} from './unread-answers.ts';

/** Where a pair goes that cannot be saved, and what earlier processes left there. */
export interface Rescue {
  /** @throws when it cannot be written */
  put(pair: NewPair): void;
  clear(): void;
  /** Brings into the store what lies in rescue files, and says so in the log. */
  saveInto(store: TokenStore): Promise<RescueReport>;
  /** Keeps what the token endpoint answered, as it came. Never throws. */
  keepAnswer(unread: UnreadAnswer): void;
  /** To the refresh token of this generation, newest first. */
  answersTo(head: { set: string; generation: number }): KeptAnswer[];
  /** Takes away those to earlier refresh tokens of the set. */
  forgetAnswers(head: { set: string; generation: number }): void;
  close(): Promise<void>;
}

/** Answers in memory, where they could not be written. */
const MOST_UNKEPT = 8;

/** Without room for a rescue file it goes on, and says so: the tokens are more needed than their net. */
export function openRescue(folder: RescueFolder, log: Logger): Rescue {
  const file = open(openRescueFile);
  const answers = open(openAnswerFiles);
  /** Newest first. */
  const unkept: KeptAnswer[] = [];
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
    keepAnswer: (unread) => {
      const { generation, answer } = unread;
      const facts = { trouble: 'uncertain', generation, status: answer.status };
      try {
        if (!answers) throw new Error('there is no room for answers');
        log.error({ ...facts, file: answers.keep(unread) }, KEPT);
      } catch (error) {
        log.fatal({ ...facts, err: error }, NOT_KEPT);
        unkept.splice(
          0,
          unkept.length,
          { path: 'memory', unread },
          ...unkept.slice(0, MOST_UNKEPT - 1),
        );
      }
    },
    answersTo: ({ set, generation }) => [
      ...unkept.filter(({ unread }) => unread.set === set && unread.generation === generation),
      ...answersTo(folder, { set, generation }),
    ],
    forgetAnswers: (head) => forgetAnswers(folder, head),
    close: async () => {
      file?.close();
      answers?.close();
    },
  };

  function open<Opened>(openIn: (directory: RescueFolder) => Opened): Opened | undefined {
    try {
      return openIn(folder);
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

const KEPT =
  'An answer to the renewal of the access token was not understood. It is kept in the rescue folder as it came, and ' +
  '`tokens recover` looks into it. Do not remove it.';

const NOT_KEPT =
  'An answer to the renewal of the access token was not understood, and could not be kept in the rescue folder; it is held in memory. ' +
  'Free the disk, or give the gateway a folder that it may write with TOKEN_RESCUE_DIR.';
