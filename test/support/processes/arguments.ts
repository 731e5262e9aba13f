import process from 'node:process';
import { parseArgs, type ParseArgsConfig } from 'node:util';

/** Reads the arguments of a command for developers. Ends the process with one line if one of them is wrong. */
export function readOptions<Config extends ParseArgsConfig>(config: Config) {
  try {
    return parseArgs(config);
  } catch (error) {
    const [fact] = (error as Error).message.split('. ');
    const names = Object.keys(config.options ?? {}).map((name) => `--${name}`);
    return usageError(`${fact}. The options are: ${names.join(', ')}.`);
  }
}

/** Reads a whole number that is at least `min`. Ends the process with one line if it is not one. */
export function readNumber(option: string, text: string, min: number): number {
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min) return number;
  return usageError(`${option} takes a whole number from ${min} on, not ${text}.`);
}

export function usageError(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}
