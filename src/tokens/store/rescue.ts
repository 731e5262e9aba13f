import type { Logger } from 'pino';
import {
  filledFiles,
  reserveFile,
  type FileKind,
  type FilledFile,
  type Label,
  type RescueFolder,
  type SealedFile,
  type UnreadAnswer,
} from './sealed-file.ts';
import {
  StoreUnavailableError,
  StoreUnreadableError,
  type NewPair,
  type StoredTokens,
  type TokenStore,
} from './token-store.ts';

export interface KeptAnswer {
  readonly path: string;
  readonly unread: UnreadAnswer;
}

type Head = Pick<NewPair, 'set' | 'generation'>;

/** The largest number of answers that are kept in memory because they could not be written. */
const MOST_UNKEPT = 8;
/**
 * The largest number of answers to one refresh token. If there are more, one in the newer half without a pair is
 * removed.
 */
const MOST_KEPT = 32;

export type Rescue = ReturnType<typeof openRescue>;

/**
 * Keeps a pair that cannot be saved, and saves those that earlier processes left. If a rescue file cannot be created,
 * logs that and goes on without one.
 *
 * @param stays whether a pair stays in the file after it was saved, until a gateway has taken it over: for commands.
 *   After their end, this is the only copy of the pair if an older copy replaces the store. Default: false
 */
export function openRescue(
  folder: RescueFolder,
  log: Logger,
  { stays = false }: { stays?: boolean } = {},
) {
  const file = reserve('rescue');
  /** The reserved file for the next answer: each answer has a separate file. */
  let room = reserve('answer');
  /** Newest first. */
  const unkept: KeptAnswer[] = [];
  const reported = new Set<string>();

  return {
    stays,
    /** @throws when it cannot be written */
    put: (pair: NewPair): void => {
      if (!file) throw new Error('there is no rescue file');
      file.put(pair);
    },
    clear: (): void => file?.clear(),
    /**
     * Saves the pairs in rescue files of other processes into the store, and logs that.
     *
     * @param baseUrl of the service that the store belongs to
     */
    saveInto: async (store: TokenStore, baseUrl: string): Promise<RescueReport> => {
      const report = await saveRescued(folder, store, { baseUrl, except: file?.path });
      for (const { generation } of report.saved) {
        log.warn({ generation: generation + 1 }, 'a token pair was saved from a rescue file');
      }
      for (const failure of report.failed.filter(isNews)) {
        log.error(
          failure,
          'A rescue file could not be saved into the store. It was left as it is.',
        );
      }
      for (const { path, store: home } of report.elsewhere.filter(isNews)) {
        log.warn({ path, store: home }, 'A rescue file of another token store was left as it is.');
      }
      return report;
    },
    /**
     * Removes the files with pairs that are not newer than the pair of this process, which it would save into an older
     * copy of the store. A command keeps all files, because it ends soon.
     */
    remove: (newest: RescueReport['newest'], held: Head): void => {
      if (stays) return;
      for (const { pair, remove } of newest) {
        if (pair.set === held.set && pair.generation < held.generation) remove();
      }
    },
    /** Keeps an answer of the token endpoint as it was received. Never throws. */
    keepAnswer: (unread: UnreadAnswer): void => {
      const { generation, answer } = unread;
      const facts = { trouble: 'uncertain', generation, status: answer.status };
      try {
        log.error({ ...facts, file: keep(unread) }, KEPT);
      } catch (error) {
        log.fatal({ ...facts, err: error }, NOT_KEPT);
        unkept.unshift({ path: 'memory', unread });
        unkept.splice(MOST_UNKEPT);
      }
    },
    /** The kept answers to the refresh token of this generation, newest first. */
    answersTo: (head: Head): KeptAnswer[] => [
      ...unkept.filter(({ unread }) => isOf(unread, head)),
      ...filedAnswers(head).toReversed().flatMap(opened),
    ],
    /** Removes the kept answers to earlier refresh tokens of the set. */
    forgetAnswers: ({ set, generation }: Head): void => {
      for (const { label, remove } of filledFiles(folder, 'answer')) {
        if (label?.set === set && label.generation < generation) remove();
      }
    },
    close: async (): Promise<void> => {
      file?.close();
      room?.close();
    },
  };

  /** @returns the path @throws when it cannot be written */
  function keep(unread: UnreadAnswer): string {
    const kept = (room ??= reserveFile(folder, 'answer'));
    const { body } = unread.answer;
    kept.put({ ...unread, answer: { ...unread.answer, body: body.toString('base64') } });
    kept.close();
    room = undefined;
    const same = filedAnswers(unread);
    const least = same.slice(MOST_KEPT / 2, -1).find(({ label }) => !label?.namesPair);
    if (same.length > MOST_KEPT) least?.remove();
    try {
      room = reserveFile(folder, 'answer');
    } catch {
      // The disk is full, or the folder is read-only. The next answer is written without reserved room.
    }
    return kept.path;
  }

  /** Oldest first. */
  function filedAnswers(head: Head): FilledFile<'answer'>[] {
    return [...filledFiles(folder, 'answer')]
      .filter(({ label }) => label && isOf(label, head))
      .toSorted((a, b) => timeOf(a) - timeOf(b));
  }

  function isNews({ path }: { path: string }): boolean {
    return !reported.has(path) && Boolean(reported.add(path));
  }

  function reserve<Kind extends FileKind>(kind: Kind): SealedFile<Kind> | undefined {
    try {
      return reserveFile(folder, kind);
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

function timeOf({ label }: FilledFile<'answer'>): number {
  return label?.at ?? 0;
}

function isOf(answer: Head, head: Head): boolean {
  return answer.set === head.set && answer.generation === head.generation;
}

/** Empty if it cannot be decrypted. */
function opened({ path, open }: FilledFile<'answer'>): KeptAnswer[] {
  try {
    const { answer, ...unread } = open();
    const body = Buffer.from(answer.body, 'base64');
    return [{ path, unread: { ...unread, answer: { ...answer, body } } }];
  } catch {
    return [];
  }
}

const KEPT =
  'An answer to the renewal of the access token was not understood. It is kept in the rescue folder as it came, and ' +
  '`tokens recover` looks into it. Do not remove it.';

const NOT_KEPT =
  'An answer to the renewal of the access token was not understood, and could not be kept in the rescue folder; it is held in memory. ' +
  'Free the disk, or give the gateway a folder that it may write with TOKEN_RESCUE_DIR.';

/**
 * Saves the pairs in rescue files that the store lacks. Removes these files, except that of the newest pair: if an older
 * copy of the store replaces it now, that file is the only copy of the pair.
 *
 * @param baseUrl of the service that the store belongs to; undefined: any
 * @param except the rescue file of this process
 */
export async function saveRescued(
  folder: RescueFolder,
  store: TokenStore,
  { baseUrl, except }: { baseUrl?: string | undefined; except?: string | undefined },
): Promise<RescueReport> {
  const report: RescueReport = { saved: [], newest: [], failed: [], elsewhere: [] };
  for (const { path, label, open, remove } of filledFiles(folder, 'rescue')) {
    if (path === except) continue;
    let isOpened = false;
    try {
      // Read first: a copy that replaces the store before the next call lacks the pair.
      const head = await store.read().catch(unreadable);
      const { storeId, set } = head ?? {};
      const identity = { description: store.description, storeId, set, baseUrl };
      if (label && !belongsTo(label, identity)) {
        report.elsewhere.push({ path, store: label.home?.store });
        continue;
      }
      const pair = open();
      isOpened = true;
      const isSaved = head !== undefined && (await store.holds(pair));
      if (!isSaved) {
        await store.save(pair);
        if (!(await readsBack(store, pair))) throw new Error('the store does not return its pair');
        report.saved.push(pair);
      }
      if (isSuperseded(pair, head ?? null)) remove();
      else report.newest.push({ pair, remove });
    } catch (error) {
      const { set, generation } = label ?? {};
      const isRefused = isOpened && !(error instanceof StoreUnavailableError);
      report.failed.push({ path, why: (error as Error).message, isRefused, set, generation });
    }
  }
  return report;
}

/**
 * Whether a process that starts now finds this pair in the store, or a later one. A successful save does not prove it:
 * the store may have been damaged or replaced since.
 *
 * @throws what `read` throws
 */
export async function readsBack(store: TokenStore, pair: NewPair): Promise<boolean> {
  const head = await store.read();
  if (!head) return false;
  if (head.set === pair.set && head.generation > pair.generation + 1) return true;
  // It may be kept beside the head: a second pair of its generation, or one of a set that was replaced.
  return head.pair.refreshToken === pair.pair.refreshToken || store.holds(pair);
}

/** Ignores that the store cannot be read: the save may succeed, and the report says why if it does not. */
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

export interface RescueReport {
  readonly saved: NewPair[];
  /** Files whose pair is not superseded by a later one in the store. They stay until `remove` is called. */
  readonly newest: { readonly pair: NewPair; readonly remove: () => void }[];
  /** Files that could not be saved, and were not changed. */
  readonly failed: (RescueFile & {
    readonly why: string;
    /** Whether the file could be read, and the store answered that it does not accept the pair. */
    readonly isRefused: boolean;
  })[];
  /** Files of another store, or of another service. */
  readonly elsewhere: { readonly path: string; readonly store: string | undefined }[];
}

interface RescueFile {
  readonly path: string;
  /** The set of its pair; undefined if the label cannot be read. */
  readonly set: string | undefined;
  /** The generation that was exchanged for it. */
  readonly generation: number | undefined;
}

/**
 * Whether a file that could not be saved may hold the pair that follows a head. An unreadable file may, if the head may
 * have a successor.
 */
export function mayFollow(
  { set, generation = 0 }: RescueFile,
  head: Head,
  mayHaveSuccessor: boolean,
): boolean {
  if (set === undefined) return mayHaveSuccessor;
  return set === head.set && generation >= head.generation;
}

export interface WaitingPair extends RescueFile {
  /** Whether it belongs to this store. Also true if its label cannot be read. */
  readonly isOurs: boolean;
  /** The store that it belongs to, if it names one. */
  readonly store: string | undefined;
  /** Why it cannot be read. */
  readonly why: string | undefined;
}

/** Rescue files whose pairs are not in the store, including those of other stores. */
export async function waitingPairs(
  folder: RescueFolder,
  store: TokenStore,
  identity: StoreIdentity,
): Promise<WaitingPair[]> {
  const waiting: WaitingPair[] = [];
  for (const { path, label, open } of filledFiles(folder, 'rescue')) {
    const isOurs = !label || belongsTo(label, identity);
    const { set, generation, home } = label ?? {};
    let why: string | undefined;
    try {
      // A store that cannot be read does not have it.
      if (await readsBack(store, open()).catch(() => false)) continue;
    } catch (error) {
      why = (error as Error).message;
    }
    waiting.push({ path, isOurs, store: home?.store, why, set, generation });
  }
  return waiting;
}

/** Identifies a store as far as that is known. */
export interface StoreIdentity {
  readonly description: string;
  /** Undefined, as `set` is, if the store is empty or missing. */
  readonly storeId: string | undefined;
  readonly set: string | undefined;
  readonly baseUrl: string | undefined;
}

/** Whether a pair belongs to this store. An empty store is identified by its address. */
function belongsTo({ set, home }: Label, store: StoreIdentity): boolean {
  if (set === store.set) return true;
  // Only a store with tokens can decide that.
  if (!home) return store.set !== undefined;
  const { description, storeId, baseUrl = home.baseUrl } = store;
  const isHere = storeId === undefined ? home.store === description : home.storeId === storeId;
  return isHere && home.baseUrl === baseUrl;
}
