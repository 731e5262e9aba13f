import { readdirSync, readFileSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { GraphQLError } from 'graphql';
import pino from 'pino';
import { onTestFinished } from 'vitest';
import type { ServiceOptions } from '../../service/service.ts';
import type { Exchange, TokenFault } from '../../service/token-answers.ts';
import { openRescue } from '../../../src/tokens/store/rescue.ts';
import { createSealer } from '../../../src/tokens/store/seal.ts';
import { openSqliteStore } from '../../../src/tokens/store/sqlite/sqlite-store.ts';
import type { TokenPair } from '../../../src/tokens/token-set.ts';
import type { StoredTokens, TokenStore } from '../../../src/tokens/store/token-store.ts';
import { startFakeUpstream, type FakeUpstream } from '../imitations/scripted.ts';
import type { Clock } from '../../../src/clock.ts';
import { ManualClock } from '../random/manual-clock.ts';
import { quickFolder } from '../quick-folder.ts';

export const PERSON = '{ persons(first: 1) { items { id } } }';

/** A pair that no service issued. */
export function pairOf(name: string, lives: Partial<TokenPair> = {}): TokenPair {
  return {
    accessToken: `access-${name}`,
    refreshToken: `refresh-${name}`,
    expiresIn: 86_400,
    refreshTokenExpiresIn: 10_368_000,
    name: 'Test',
    ...lives,
  };
}

type Method = 'read' | 'import' | 'claim' | 'endAttempt' | 'save';

/** A store that records what was saved, and can be made to fail or to wait. */
export interface WatchedStore extends TokenStore {
  /** Access tokens that were saved successfully. */
  readonly kept: ReadonlySet<string>;
  /** Every token that was passed to it. */
  readonly secrets: ReadonlySet<string>;
  /** Methods that fail while they are in this set. */
  readonly failing: Set<Method>;
  /** Makes the method wait; `reached` resolves when it is called. */
  hold(method: Method): { reached: Promise<void>; release: () => void };
  useClock(clock: Pick<Clock, 'now'>): void;
}

/**
 * Stays open when a gateway closes it, so that the next one can continue with it; closed after the test.
 *
 * @param open receives the wall clock of the gateway that uses the store
 */
export function watchStore(open: (now: () => number) => TokenStore = memoryStore): WatchedStore {
  let clock: Pick<Clock, 'now'> = new ManualClock();
  const inner = open(() => clock.now());
  onTestFinished(() => inner.close());
  const kept = new Set<string>();
  const secrets = new Set<string>();
  const failing = new Set<Method>();
  const gates = new Map<Method, () => Promise<void>>();

  async function through<T>(method: Method, work: () => Promise<T>, pair?: TokenPair): Promise<T> {
    if (pair) secrets.add(pair.accessToken).add(pair.refreshToken);
    await gates.get(method)?.();
    if (failing.has(method) && method !== 'endAttempt')
      throw new Error(`${method}: the disk is full`);
    const result = await work();
    if (pair) kept.add(pair.accessToken);
    return result;
  }

  return {
    ...inner,
    kept,
    secrets,
    failing,
    useClock: (given) => void (clock = given),
    hold: (method) => {
      const reached = Promise.withResolvers<void>();
      const gate = Promise.withResolvers<void>();
      gates.set(method, () => {
        reached.resolve();
        return gate.promise;
      });
      const release = () => {
        gates.delete(method);
        gate.resolve();
      };
      return { reached: reached.promise, release };
    },
    read: () => through('read', () => inner.read()),
    import: (set) => through('import', () => inner.import(set), set.pair),
    claim: (claim) => through('claim', () => inner.claim(claim)),
    endAttempt: (attempt, ending) =>
      through('endAttempt', async () => {
        if (!failing.has('endAttempt')) return inner.endAttempt(attempt, ending);
        // The claim stays, and yet the right to exchange is released.
        await inner.endAttempt(attempt, { ...ending, outcome: 'uncertain' });
        throw new Error('endAttempt: the disk is full');
      }),
    save: (saved) => through('save', () => inner.save(saved), saved.pair),
    close: async () => {},
  };
}

/**
 * A store in memory that is read again only after something was written. These tests span months in which a gateway
 * reads it every half a minute, and no other process can change it.
 */
function memoryStore(now: () => number): TokenStore {
  const store = openSqliteStore(':memory:', { now });
  let calls = 0;
  let last: Promise<StoredTokens | null> | undefined;
  const anew =
    <Given extends unknown[], Result>(method: (...given: Given) => Promise<Result>) =>
    async (...given: Given): Promise<Result> => {
      calls += 1;
      last = undefined;
      try {
        return await method(...given);
      } finally {
        calls -= 1;
      }
    };
  return {
    ...store,
    read: async () => {
      if (calls > 0) return store.read();
      const stored = await (last ??= store.read());
      return stored && { ...stored, age: now() - stored.savedAt };
    },
    import: anew(store.import),
    withdraw: anew(store.withdraw),
    claim: anew(store.claim),
    endAttempt: anew(store.endAttempt),
    save: anew(store.save),
    moveOut: anew(store.moveOut),
    moveBack: anew(store.moveBack),
    moveIn: anew(store.moveIn),
  };
}

/** A rescue folder, by default one of its own, removed after the test. */
export function openTestRescue(folder = quickFolder()) {
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const owner = { host: 'test', pid: process.pid, lives: () => true };
  const directory = { directory: folder, sealer: createSealer([]), owner };
  const rescue = openRescue(directory, pino({ level: 'silent' }));
  onTestFinished(() => rescue.close());
  return { rescue, rescued: () => rescuedIn(folder), ...directory };
}

/** The content of the rescue files in a folder; empty if they hold no pair. */
function rescuedIn(folder: string): string {
  const names = readdirSync(folder).filter((name) => name.startsWith('rescue-'));
  return names
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('\n')
    .trim();
}

/** A service that is closed after the test. */
export async function startScripted(options: ServiceOptions = {}): Promise<FakeUpstream> {
  const service = await startFakeUpstream({ persons: 3, ...options });
  onTestFinished(() => service[Symbol.asyncDispose]());
  return service;
}

/** Answers an exchange without processing anything. */
export function reply(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): TokenFault {
  if (typeof body !== 'string') return { status, headers, body: JSON.stringify(body) };
  return { status, headers: { 'content-type': 'text/html', ...headers }, body };
}

/** Refresh tokens that were sent again after the answer that spent them. */
export function sentAgain(exchanges: readonly Exchange[]): string[] {
  const spent = new Set<string>();
  return exchanges.flatMap(({ refreshToken, outcome }) => {
    const again = spent.has(refreshToken);
    if (outcome === 'answered') spent.add(refreshToken);
    return again ? [refreshToken] : [];
  });
}

export function codesOf({
  errors = [],
}: {
  errors?: readonly Pick<GraphQLError, 'extensions'>[];
}): unknown[] {
  return errors.map(({ extensions }) => extensions['code']);
}

export function json(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response
    .writeHead(status, { 'content-type': 'application/json', ...headers })
    .end(JSON.stringify(body));
}
