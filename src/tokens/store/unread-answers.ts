import { closeSync, openSync, readFileSync, readSync, truncateSync } from 'node:fs';
import type { RawAnswer } from '../token-set.ts';
import {
  filesIn,
  isLeftOver,
  openReservedFile,
  removeFile,
  type RescueFolder,
} from './rescue-file.ts';
import type { NewPair } from './token-store.ts';

/** What the token endpoint answered to an exchange, and could not be understood, or not wholly. */
export interface UnreadAnswer extends Pick<NewPair, 'set' | 'generation' | 'attempt' | 'at'> {
  readonly home: NonNullable<NewPair['home']>;
  readonly answer: RawAnswer;
  /** Whether it names an access token and a refresh token. */
  readonly namesPair: boolean;
}

/** An answer in the rescue folder. */
export interface KeptAnswer {
  readonly path: string;
  readonly unread: UnreadAnswer;
}

/** Keeps such answers in the rescue folder, each in a file of its own, for which there is room in advance. */
export interface AnswerFiles {
  /** On disk when it returns; gives the path. @throws when it cannot be written */
  keep(unread: UnreadAnswer): string;
  close(): void;
}

/**
 * Of one generation. The first ones and the last ones matter: before the refresh token was spent there is nothing
 * in them, and behind that there are only refusals.
 */
const MOST = 32;

/** @throws when the folder or a file cannot be made */
export function openAnswerFiles(folder: RescueFolder): AnswerFiles {
  const open = () => openReservedFile(folder, 'answer');
  for (const { path, name } of filesIn(folder.directory, 'answer')) {
    if (isLeftOver(name, folder.owner) && isRoom(path)) removeFile(path);
  }
  let reserved: ReturnType<typeof open> | undefined = open();

  return {
    keep: (unread) => {
      const file = (reserved ??= open());
      const text = JSON.stringify(sealed(unread, folder));
      file.put(text);
      const { path } = file;
      file.close();
      reserved = undefined;
      try {
        truncateSync(path, Buffer.byteLength(text));
        makeRoom(folder, unread);
        reserved = open();
      } catch {
        // The disk is full, or the folder read-only: the next one has to do without room in advance.
      }
      return path;
    },
    close: () => {
      reserved?.close();
      reserved = undefined;
    },
  };
}

/** To the refresh token of this generation, newest first. What cannot be unsealed is left out. */
export function answersTo(
  folder: RescueFolder,
  { set, generation }: Pick<UnreadAnswer, 'set' | 'generation'>,
): KeptAnswer[] {
  return labelsIn(folder)
    .filter((one) => one.set === set && one.generation === generation)
    .toReversed()
    .flatMap(({ path }) => opened(path, folder));
}

/** Takes away those to earlier refresh tokens of the set, which have been exchanged by now. */
export function forgetAnswers(
  folder: RescueFolder,
  { set, generation }: Pick<UnreadAnswer, 'set' | 'generation'>,
): void {
  for (const one of labelsIn(folder)) {
    if (one.set === set && one.generation < generation) removeFile(one.path);
  }
}

function makeRoom(folder: RescueFolder, { set, generation }: UnreadAnswer): void {
  const same = labelsIn(folder).filter((one) => one.set === set && one.generation === generation);
  const least = same.slice(MOST / 2, -1).find(({ namesPair }) => !namesPair);
  if (same.length > MOST && least) removeFile(least.path);
}

interface Label extends Pick<UnreadAnswer, 'set' | 'generation' | 'at' | 'namesPair'> {
  readonly path: string;
}

/** Oldest first. It is written beside what is sealed. */
function labelsIn({ directory }: RescueFolder): Label[] {
  return filesIn(directory, 'answer')
    .flatMap(({ path }) => {
      try {
        if (isRoom(path)) return [];
        return [{ ...(JSON.parse(readFileSync(path, 'utf8')) as Label), path }];
      } catch {
        // Gone meanwhile, or not written to its end.
        return [];
      }
    })
    .toSorted((one, other) => one.at - other.at);
}

function sealed({ answer, ...label }: UnreadAnswer, { sealer }: RescueFolder) {
  const text = JSON.stringify({ ...answer, body: answer.body.toString('base64') });
  return { version: 1, ...label, answer: sealer.seal(text, aboutOf(label)) };
}

function opened(path: string, { sealer }: RescueFolder): KeptAnswer[] {
  try {
    const { answer, ...label } = JSON.parse(readFileSync(path, 'utf8')) as ReturnType<
      typeof sealed
    >;
    const raw = JSON.parse(sealer.open(answer, aboutOf(label))) as RawAnswer & { body: string };
    return [
      { path, unread: { ...label, answer: { ...raw, body: Buffer.from(raw.body, 'base64') } } },
    ];
  } catch {
    return [];
  }
}

function aboutOf({ set, generation }: Pick<UnreadAnswer, 'set' | 'generation'>): string {
  return `${set}|${generation}|answer`;
}

/** For an answer to come, as most are. One byte says it: they are looked at often, and are large. */
function isRoom(path: string): boolean {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, 'r');
    const first = Buffer.alloc(1);
    readSync(descriptor, first);
    return first.toString() !== '{';
  } catch {
    // Gone meanwhile.
    return false;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
