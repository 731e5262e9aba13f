import { readFileSync } from 'node:fs';
import process from 'node:process';
import { systemClock, type Clock } from '../clock.ts';

/** The parts of the machine that a gateway uses. They are passed in, so that tests can replace them. */
export interface Machine {
  readonly readFile: (path: string) => string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
}

export const thisMachine: Machine = {
  readFile: (path) => readFileSync(path, 'utf8'),
  env: process.env,
  clock: systemClock,
};
