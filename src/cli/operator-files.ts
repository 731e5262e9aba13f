import { randomUUID } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { readSnapshot } from '../schema/snapshot.ts';
import { CommandError, type Terminal } from './terminal.ts';

type ReadFile = Pick<Terminal, 'readFile'>;

/** Reads the schema snapshot as SDL. @throws CommandError when it cannot be read, or is not a schema */
export function readSnapshotFile(path: string, terminal: ReadFile): string {
  const sdl = readText(
    path,
    terminal,
    (code) =>
      `The schema snapshot cannot be read (${path}: ${code}). Set RECRUITING_SCHEMA to the file that holds it.`,
  )!;
  try {
    readSnapshot(sdl, path);
    return sdl;
  } catch (error) {
    throw new CommandError((error as Error).message, 2);
  }
}

/**
 * Reads adapters.json beside the schema snapshot; undefined if there is none. Its content is checked when the schema
 * is made.
 */
export function readAdaptersFile(schemaPath: string, terminal: ReadFile): unknown {
  const path = join(dirname(schemaPath), 'adapters.json');
  const text = readText(path, terminal, (code) =>
    code === 'ENOENT'
      ? undefined
      : `${path} cannot be read (${code}). Make it readable, or remove it.`,
  );
  if (text === undefined) return undefined;
  return parse(
    text,
    (why) => `${path} is not JSON: ${why}. Correct it, or remove it to derive everything by shape.`,
  );
}

/**
 * Reads the manifest of trusted documents; undefined if none is configured. Its content is checked when the schema
 * is made.
 */
export function readTrustedDocumentsFile(path: string | undefined, terminal: ReadFile): unknown {
  if (path === undefined) return undefined;
  const text = readText(path, terminal, (code) => `${path} cannot be read (${code}). ${TRUSTED}`)!;
  return parse(text, (why) => `${path} is not JSON: ${why}. ${TRUSTED}`);
}

const TRUSTED =
  'TRUSTED_DOCUMENTS must be the path of a manifest of operations; without it, every operation is accepted.';

/** @param complaint the message for an error code; undefined if the file may be missing */
function readText(
  path: string,
  { readFile }: ReadFile,
  complaint: (code: string) => string | undefined,
): string | undefined {
  try {
    return readFile(path);
  } catch (error) {
    const message = complaint((error as { code?: string }).code ?? 'unknown error');
    if (message === undefined) return undefined;
    throw new CommandError(message, 2);
  }
}

function parse(text: string, complaint: (why: string) => string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CommandError(complaint((error as Error).message), 2);
  }
}

/**
 * Writes a file whole or not at all: a reader finds the old content or the new, even after a crash. A link stays a
 * link.
 */
export function replaceFile(path: string, text: string): void {
  let beside: string | undefined;
  try {
    const there = statSync(path, { throwIfNoEntry: false });
    const target = there ? realpathSync(path) : path;
    beside = `${target}.${randomUUID()}.new`;
    const file = openSync(beside, 'wx', there ? there.mode & 0o777 : 0o666);
    try {
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(beside, target);
  } catch (error) {
    if (beside !== undefined) rmSync(beside, { force: true });
    const { code } = error as { code?: string };
    throw new CommandError(
      `${path} cannot be written (${code ?? 'unknown error'}). Nothing was changed. ` +
        'Check that the folder is there, that this user may write to it, and that the disk has room.',
    );
  }
}
