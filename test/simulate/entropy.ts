/**
 * Takes the place of `node:crypto` (hooks.ts): names of attempts, sets and files follow from the seed of a history, and
 * what was computed once is remembered, since histories repeat it thousands of times.
 */
import {
  createHash as hash,
  createHmac as hmac,
  createSecretKey as secretKey,
  type KeyObject,
} from 'node:crypto';
import { chanceFrom, type Chance } from './chance.ts';

export * from 'node:crypto';

let chance: Chance = chanceFrom(0);

export function seedEntropy(seed: number): void {
  chance = chanceFrom(seed);
}

export function randomBytes(size: number): Buffer {
  return Buffer.from(Array.from({ length: size }, () => chance.between(0, 255)));
}

export function randomUUID(): string {
  return randomBytes(8).toString('hex');
}

const keys = new Map<string, KeyObject>();
const digests = new Map<string, string>();

export function createSecretKey(bytes: Buffer): KeyObject {
  return remembered(keys, bytes.toString('hex'), () => secretKey(bytes));
}

export function createHmac(algorithm: string, secret: KeyObject | Buffer) {
  const key = Buffer.isBuffer(secret) ? createSecretKey(secret) : secret;
  return {
    update: (text: string) => ({
      digest: (encoding: 'hex') => {
        const compute = () => hmac(algorithm, key).update(text).digest(encoding);
        return remembered(digests, `${numberOf(key)} ${text}`, compute);
      },
    }),
  };
}

export function createHash(algorithm: string) {
  const texts: string[] = [];
  const made = {
    update: (text: string) => {
      texts.push(text);
      return made;
    },
    digest: (encoding: 'hex') => {
      const text = texts.join('');
      const compute = () => hash(algorithm).update(text).digest(encoding);
      return remembered(digests, `${algorithm} ${text}`, compute);
    },
  };
  return made;
}

const numbers = new WeakMap<KeyObject, number>();
let numbered = 0;

function numberOf(key: KeyObject): number {
  const number = numbers.get(key) ?? (numbered += 1);
  numbers.set(key, number);
  return number;
}

const MOST_REMEMBERED = 1_000;

function remembered<T>(known: Map<string, T>, name: string, compute: () => T): T {
  const value = known.get(name) ?? compute();
  if (known.size > MOST_REMEMBERED) known.clear();
  known.set(name, value);
  return value;
}
