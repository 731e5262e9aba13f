import { dirname, join } from 'node:path';
import { OperatorMistake } from '../errors.ts';
import { readSnapshot } from '../schema/snapshot.ts';
import type { Machine } from './machine.ts';

type ReadFile = Pick<Machine, 'readFile'>;

/** Reads the schema snapshot, SDL or JSON. @throws OperatorMistake when it cannot be read, or is not a schema */
export function readSnapshotFile(path: string, machine: ReadFile): string {
  const text = readText(path, machine, 'Set RECRUITING_SCHEMA to the file that holds the schema.')!;
  readSnapshot(text, path);
  return text;
}

/**
 * Reads adapters.json beside the schema snapshot; undefined if there is none. Its content is checked when the schema
 * is made.
 */
export function readAdaptersFile(schemaPath: string, machine: ReadFile): unknown {
  const path = join(dirname(schemaPath), 'adapters.json');
  return readJson(path, machine, 'Correct it, or remove it to derive everything by shape.', {
    mayBeMissing: true,
  });
}

/**
 * Reads the manifest of trusted documents; undefined if none is configured. Its content is checked when the schema
 * is made.
 */
export function readTrustedDocumentsFile(path: string | undefined, machine: ReadFile): unknown {
  return path === undefined ? undefined : readJson(path, machine, TRUSTED);
}

const TRUSTED =
  'TRUSTED_DOCUMENTS must be the path of a manifest of operations; without it, every operation is accepted.';

interface Options {
  /** Default: false. */
  readonly mayBeMissing?: boolean;
}

function readJson(path: string, machine: ReadFile, advice: string, options?: Options): unknown {
  const text = readText(path, machine, advice, options);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new OperatorMistake(`${path} is not JSON: ${(error as Error).message}. ${advice}`);
  }
}

/** @returns undefined only for a file that may be missing */
function readText(
  path: string,
  { readFile }: ReadFile,
  advice: string,
  { mayBeMissing = false }: Options = {},
): string | undefined {
  try {
    return readFile(path);
  } catch (error) {
    const { code = 'unknown error' } = error as { code?: string };
    if (mayBeMissing && code === 'ENOENT') return undefined;
    throw new OperatorMistake(`${path} cannot be read (${code}). ${advice}`);
  }
}
