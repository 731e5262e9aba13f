import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { OperatorMistake } from '../errors.ts';

/** Reads the schema snapshot, SDL or JSON. Its content is checked when the schema is made. */
export function readSnapshotFile(path: string): string {
  return readText(path, 'Set RECRUITING_SCHEMA to the file that holds the schema.');
}

/** Reads adapters.json beside the schema snapshot; undefined if there is none. */
export function readAdaptersFile(schemaPath: string): unknown {
  const path = join(dirname(schemaPath), 'adapters.json');
  if (!existsSync(path)) return undefined;
  return readJson(path, 'Correct it, or remove it to derive everything by shape.');
}

/** Reads the manifest of trusted documents; undefined if none is configured. */
export function readTrustedDocumentsFile(path: string | undefined): unknown {
  if (path === undefined) return undefined;
  return readJson(
    path,
    'TRUSTED_DOCUMENTS must be the path of a manifest of operations; without it, every operation is accepted.',
  );
}

function readJson(path: string, advice: string): unknown {
  const text = readText(path, advice);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new OperatorMistake(`${path} is not JSON: ${(error as Error).message}. ${advice}`);
  }
}

function readText(path: string, advice: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code = 'unknown error' } = error as { code?: string };
    throw new OperatorMistake(`${path} cannot be read (${code}). ${advice}`);
  }
}
