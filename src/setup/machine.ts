import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import process from 'node:process';
import { getProxyForUrl } from 'proxy-from-env';
import type { Owner } from '../tokens/store/sealed-file.ts';

/** The parts of the machine that a gateway uses. They are passed in, so that tests can replace them. */
export interface Machine {
  readonly readFile: (path: string) => string;
  /** The system's proxy for an address. */
  readonly proxyFor: (url: string) => string | undefined;
  /** This process. */
  readonly owner: Owner;
}

export const thisMachine: Machine = {
  readFile: (path) => readFileSync(path, 'utf8'),
  proxyFor: (url) => getProxyForUrl(url) || undefined,
  owner: { host: hostname(), pid: process.pid, lives },
};

function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
