import { dirname, join } from 'node:path';
import { CommandError, type Terminal } from './terminal.ts';

/**
 * Reads adapters.json beside the schema snapshot; undefined where there is none. What it says is held
 * against the schema when that is made.
 */
export function readAdaptersFile(
  schemaPath: string,
  { readFile }: Pick<Terminal, 'readFile'>,
): unknown {
  const path = join(dirname(schemaPath), 'adapters.json');
  const text = read(path, readFile);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CommandError(
      `${path} is not JSON: ${(error as Error).message}. Correct it, or remove it to derive everything by shape.`,
      2,
    );
  }
}

function read(path: string, readFile: Terminal['readFile']): string | undefined {
  try {
    return readFile(path);
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === 'ENOENT') return undefined;
    throw new CommandError(
      `${path} cannot be read (${code ?? 'unknown error'}). Make it readable, or remove it.`,
      2,
    );
  }
}
