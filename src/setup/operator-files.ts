import { dirname, join } from 'node:path';
import { OperatorMistake } from '../errors.ts';
import { readSnapshot } from '../schema/snapshot.ts';
import type { Machine } from './machine.ts';

type ReadFile = Pick<Machine, 'readFile'>;

/** Reads the schema snapshot, SDL or JSON. @throws OperatorMistake when it cannot be read, or is not a schema */
export function readSnapshotFile(path: string, machine: ReadFile): string {
  const text = readText(
    path,
    machine,
    (code) =>
      `The schema snapshot cannot be read (${path}: ${code}). Set RECRUITING_SCHEMA to the file that holds it.`,
  )!;
  readSnapshot(text, path);
  return text;
}

/**
 * Reads adapters.json beside the schema snapshot; undefined if there is none. Its content is checked when the schema
 * is made.
 */
export function readAdaptersFile(schemaPath: string, machine: ReadFile): unknown {
  const path = join(dirname(schemaPath), 'adapters.json');
  const text = readText(path, machine, (code) =>
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
export function readTrustedDocumentsFile(path: string | undefined, machine: ReadFile): unknown {
  if (path === undefined) return undefined;
  const text = readText(path, machine, (code) => `${path} cannot be read (${code}). ${TRUSTED}`)!;
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
    throw new OperatorMistake(message);
  }
}

function parse(text: string, complaint: (why: string) => string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new OperatorMistake(complaint((error as Error).message));
  }
}
