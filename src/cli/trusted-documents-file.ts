import { CommandError, type Terminal } from './terminal.ts';

/**
 * Reads the manifest of trusted documents; undefined where none is configured. What it holds is checked against
 * the schema when that is made.
 */
export function readTrustedDocumentsFile(
  path: string | undefined,
  { readFile }: Pick<Terminal, 'readFile'>,
): unknown {
  if (path === undefined) return undefined;
  const text = read(path, readFile);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw mistake(`${path} is not JSON: ${(error as Error).message}.`);
  }
}

function read(path: string, readFile: Terminal['readFile']): string {
  try {
    return readFile(path);
  } catch (error) {
    const { code } = error as { code?: string };
    throw mistake(`${path} cannot be read (${code ?? 'unknown error'}).`);
  }
}

function mistake(what: string): CommandError {
  return new CommandError(
    `${what} TRUSTED_DOCUMENTS must be the path of a manifest of operations; without it, every operation is taken.`,
    2,
  );
}
