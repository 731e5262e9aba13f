import type { Logger } from 'pino';
import {
  belongsTo,
  filesIn,
  isLeftOver,
  labelOf,
  openRescueFile,
  rescuedPair,
  removeFile,
  textOf,
  type Label,
  type RescueFolder,
  type StoreIdentity,
} from './rescue-file.ts';
import { readsBack } from './read-back.ts';
import {
  StoreUnavailableError,
  StoreUnreadableError,
  type NewPair,
  type StoredTokens,
  type TokenStore,
} from './token-store.ts';
import {
  answersTo,
  forgetAnswers,
  openAnswerFiles,
  type KeptAnswer,
  type UnreadAnswer,
} from './unread-answers.ts';

/** Where a pair goes that cannot be saved, and what earlier processes left there. */
export interface Rescue {
  /**
   * Whether a pair stays there when it is saved. So it is for a command, which ends before a gateway has taken its
   * pair over: should an older copy of the store be put in its place meanwhile, this is the only copy of the pair.
   * It stays until a gateway has taken it over.
   */
  readonly stays: boolean;
  /** @throws when it cannot be written */
  put(pair: NewPair): void;
  clear(): void;
  /**
   * Brings into the store what lies in rescue files of other processes, and says so in the log.
   *
   * @param baseUrl of the service that the store is of
   */
  saveInto(store: TokenStore, baseUrl: string): Promise<RescueReport>;
  /**
   * Removes the files whose pair this process holds, or a later one. Should an older copy of the store be put in its
   * place, this process saves that one into it. A command, which ends soon, removes none.
   */
  remove(newest: RescueReport['newest'], held: { set: string; generation: number }): void;
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
export function openRescue(
  folder: RescueFolder,
  log: Logger,
  { stays = false }: { stays?: boolean } = {},
): Rescue {
  const file = open(openRescueFile);
  const answers = open(openAnswerFiles);
  /** Newest first. */
  const unkept: KeptAnswer[] = [];
  const reported = new Set<string>();

  return {
    stays,
    put: (pair) => {
      if (!file) throw new Error('there is no rescue file');
      file.put(pair);
    },
    clear: () => file?.clear(),
    saveInto: async (store, baseUrl) => {
      const report = await saveRescued(folder, store, { baseUrl, own: file?.path });
      for (const { generation } of report.saved) {
        log.warn({ generation: generation + 1 }, 'a token pair was saved from a rescue file');
      }
      for (const failure of report.failed.filter(isNews)) {
        log.error(
          failure,
          'A rescue file could not be saved into the store. It was left as it is.',
        );
      }
      for (const { path, store: other } of report.elsewhere.filter(isNews)) {
        log.warn({ path, store: other }, 'A rescue file of another token store was left as it is.');
      }
      return report;
    },
    remove: (newest, held) => {
      if (stays) return;
      for (const { pair, remove } of newest) {
        if (pair.set === held.set && pair.generation < held.generation) remove();
      }
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

  function isNews({ path }: { path: string }): boolean {
    return !reported.has(path) && Boolean(reported.add(path));
  }

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

/**
 * What rescue files hold that the store does not have yet is saved there. The files are removed then, except that of the
 * newest pair: should an older copy of the store be put in its place now, it would be the only copy of the pair.
 *
 * @param baseUrl of the service that the store is of; undefined: any
 * @param own the file of this process, which looks after it itself
 */
export async function saveRescued(
  { directory, sealer, owner }: RescueFolder,
  store: TokenStore,
  { baseUrl, own }: { baseUrl?: string | undefined; own?: string | undefined },
): Promise<RescueReport> {
  const saved: NewPair[] = [];
  const newest: RescueReport['newest'][number][] = [];
  const failed: RescueReport['failed'][number][] = [];
  const elsewhere: RescueReport['elsewhere'][number][] = [];
  for (const { path, name } of filesIn(directory, 'rescue')) {
    if (path === own) continue;
    let isOpened = false;
    try {
      const text = textOf(path);
      if (text === '') {
        if (isLeftOver(name, owner)) removeFile(path);
        continue;
      }
      const label = labelOf(text);
      // Read before the store is asked for the pair: a copy that is put in its place between the two lacks the pair.
      const head = await store.read().catch(unreadable);
      const { storeId, set } = head ?? {};
      const identity = { description: store.description, storeId, set, baseUrl };
      if (label && !belongsTo(label, identity)) {
        elsewhere.push({ path, store: label.home?.store });
        continue;
      }
      const pair = rescuedPair(text, sealer);
      isOpened = true;
      const isThere = head !== undefined && (await store.holds(pair));
      if (!isThere) {
        await store.save(pair);
        if (!(await readsBack(store, pair))) throw new Error('the store does not return its pair');
        saved.push(pair);
      }
      const remove = () => removeUnchanged(path, text);
      if (isSuperseded(pair, head ?? null)) remove();
      else newest.push({ pair, remove });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue;
      const { set, generation } = labelIn(path) ?? {};
      const isRefused = isOpened && !(error instanceof StoreUnavailableError);
      failed.push({ path, why: (error as Error).message, isRefused, set, generation });
    }
  }
  return { saved, newest, failed, elsewhere };
}

/** A head whose row was removed is restored by the pair of a rescue file; what else is wrong stays so. */
function unreadable(error: unknown): undefined {
  if (!(error instanceof StoreUnreadableError)) throw error;
}

/**
 * Whether the store has a later pair than this one. A set that was imported after it replaces it only when it was
 * refreshed once: an import that the service refuses is taken back.
 */
function isSuperseded({ set, generation }: NewPair, head: StoredTokens | null): boolean {
  if (!head || head.generation <= generation + 1) return false;
  return head.set === set || !head.imported;
}

/** Its process may live, and have put another pair into it meanwhile; or another process may have removed it. */
function removeUnchanged(path: string, text: string): void {
  try {
    if (textOf(path) === text) removeFile(path);
  } catch {
    // The next sync looks at it again.
  }
}

export interface RescueReport {
  readonly saved: readonly NewPair[];
  /** Files whose pair no later one of the store replaces. They stay until they are removed. */
  readonly newest: readonly { readonly pair: NewPair; readonly remove: () => void }[];
  /** Files that are left as they are. */
  readonly failed: readonly {
    readonly path: string;
    readonly why: string;
    /** The file can be read, and the store answers that it does not take the pair. */
    readonly isRefused: boolean;
    /** Whose pair it holds, where that can be read. */
    readonly set: string | undefined;
    /** The generation that was exchanged for it. */
    readonly generation: number | undefined;
  }[];
  /** Files of another store, or of another service: they are none of ours. */
  readonly elsewhere: readonly { readonly path: string; readonly store: string | undefined }[];
}

/**
 * Whether a file that could not be saved may hold the pair that comes after a head. Of a file that says nothing this
 * is believed only while an exchange of the head is uncertain.
 */
export function mayFollow(
  { set, generation = 0 }: Pick<RescueReport['failed'][number], 'set' | 'generation'>,
  head: { readonly set: string; readonly generation: number; readonly mayHaveSuccessor: boolean },
): boolean {
  if (set === undefined) return head.mayHaveSuccessor;
  return set === head.set && generation >= head.generation;
}

export interface WaitingPair {
  readonly path: string;
  /** Whether it belongs into this store, or may, since it cannot be read. */
  readonly isOurs: boolean;
  /** Where it belongs, as far as it says so. */
  readonly store: string | undefined;
  /** Why it cannot be read. */
  readonly why: string | undefined;
  /** Whose pair it holds, and the generation that was exchanged for it, where that can be read. */
  readonly set: string | undefined;
  readonly generation: number | undefined;
}

/** What lies in rescue files, whoever's they are, and is not in the store. */
export async function waitingPairs(
  { directory, sealer }: RescueFolder,
  store: TokenStore,
  identity: StoreIdentity,
): Promise<WaitingPair[]> {
  const waiting: WaitingPair[] = [];
  const add = (path: string, why?: string) => {
    const label = labelIn(path);
    const isOurs = !label || belongsTo(label, identity);
    const { set, generation, home } = label ?? {};
    waiting.push({ path, isOurs, store: home?.store, why, set, generation });
  };
  for (const { path } of filesIn(directory, 'rescue')) {
    try {
      const text = textOf(path);
      if (text === '') continue;
      const pair = rescuedPair(text, sealer);
      // A store that cannot be read does not have it.
      if (!(await readsBack(store, pair).catch(() => false))) add(path);
    } catch (error) {
      // It was saved by somebody meanwhile.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue;
      add(path, (error as Error).message);
    }
  }
  return waiting;
}

function labelIn(path: string): Label | undefined {
  try {
    return labelOf(textOf(path));
  } catch {
    return undefined;
  }
}
