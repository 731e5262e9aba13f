import { chmodSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { expect, vi } from 'vitest';
import { openPostgresStore } from '../../../src/tokens/postgres.ts';
import { createSealer } from '../../../src/tokens/seal.ts';
import { openSqliteStore } from '../../../src/tokens/sqlite.ts';
import { startService, type Service } from '../../service/service.ts';
import { askAt, type GraphqlAnswer } from '../gateway/ask-at.ts';
import { runHere } from '../gateway/run-here.ts';
import { storeAccess } from '../gateway/stores.ts';
import { wrote } from '../gateway/written.ts';
import { bundled } from '../processes/bundled.ts';
import { served, startProcess, type Program, type Served } from '../processes/process.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const SERVED = { persons: { items: [expect.objectContaining({ id: expect.any(String) })] } };
const A_DAY = 86_400_000;

let sent = 0;

/** Requests the first person with a unique text: equal queries would share one request to the service. */
function personUnlikeOthers(): string {
  sent += 1;
  return `{ persons(first: 1) { items { id of${sent}: id } } }`;
}

/** A gateway in a process of its own. */
export interface TokenGateway extends Program, Served {
  ask(): Promise<GraphqlAnswer>;
  /** Sends a query, and expects an answer. */
  serves(): Promise<void>;
}

interface WorldOptions {
  /** Whether an exchange revokes the old access token at once: then only a pair that was saved serves. */
  readonly revoke?: boolean;
  /** The address of the store. Default: a file. */
  readonly store?: string;
}

/** A service, a token store and gateways as processes. Leaving its scope ends them all. */
export async function startTokenWorld({ revoke = false, store }: WorldOptions = {}) {
  const program = await bundled('src/process.ts');
  const service = { ahead: 0 };
  const ends = new AsyncDisposableStack();
  const sandbox = ends.adopt(
    await startService({
      now: () => Date.now() + service.ahead,
      revokeOnRefresh: revoke,
      persons: 3,
    }),
    (it) => it.close(),
  );
  const folder = ends.use(temporaryFolder());
  // Another user may have to reach what is in it.
  chmodSync(folder.path, 0o755);
  const own = folder.file('tokens');
  const rescue = folder.file('rescue');
  for (const path of [own, rescue]) mkdirSync(path, { mode: 0o700 });
  const path = `${own}/tokens.db`;
  const env = {
    RECRUITING_URL: sandbox.url,
    TOKEN_STORE: store ?? `sqlite:${path}`,
    TOKEN_RESCUE_DIR: rescue,
    ALLOW_ANONYMOUS: 'true',
    PAGES_PER_MINUTE: '0',
  };
  /** Exchanges that the test itself made. */
  const ours = new Set<Service['exchanges'][number]>();

  const { stored, alter } = storeAccess(
    store === undefined
      ? openSqliteStore(path, createSealer([]))
      : openPostgresStore(store, createSealer([])),
  );
  const tokens = (args: readonly string[]) => runHere(['tokens', ...args], env);
  const start = (args: readonly string[], extra: Record<string, string> = {}, user?: number) =>
    ends.use(startProcess([program, ...args], { env: { ...env, ...extra }, user }));
  const outcomes = (from = 0) =>
    sandbox.exchanges
      .slice(from)
      .filter((one) => !ours.has(one))
      .map(({ outcome }) => outcome);

  return {
    [Symbol.asyncDispose]: () => ends.disposeAsync(),
    sandbox,
    env,
    /** Of the file, and of the folder that it is in. */
    path,
    own,
    alter,
    stored,
    /** Runs a `tokens` command in this process. */
    tokens,
    /** Starts the program. */
    start,
    /** Starts the gateway, and waits until it listens. */
    serve: async (extra?: Record<string, string>, user?: number): Promise<TokenGateway> => {
      const gateway = await served(start([], extra, user));
      const ask = async () => {
        const answer = await askAt(gateway.url, personUnlikeOthers());
        wrote(JSON.stringify(answer));
        return answer;
      };
      const serves = async () => expect(await ask()).toEqual({ data: SERVED });
      return Object.create(gateway, { ask: { value: ask }, serves: { value: serves } });
    },
    /**
     * Makes all access tokens expire: the service's clock is a day ahead from now on. The pair in the store becomes a
     * minute older, because a token that is seconds old is treated in another way.
     */
    expire: async () => {
      await alter((state) => ({
        savedAt: state.savedAt - 60_000,
        expiresAt: state.expiresAt - 60_000,
      }));
      service.ahead += A_DAY;
    },
    /** Ends the time in which the claim of a process blocks the others. */
    endClaim: () => alter(({ claim }, now) => ({ claim: { ...claim!, until: now } })),
    /** How the exchanges ended for the service, from the one with this number on. */
    outcomes,
    /** The emergency files. */
    unsaved: () => (existsSync(rescue) ? readdirSync(rescue) : []),
    /** What is left once all gateways have ended: see `saved`. Spends the refresh token. */
    left: async () => {
      const { generation, claim, pair } = await stored();
      const { code } = await tokens(['status']);
      const body = new URLSearchParams({
        grant_type: 'refresh_token',
        refresh_token: pair.refreshToken,
      });
      const { ok } = await fetch(`${sandbox.url}/oauth/token`, { method: 'POST', body });
      ours.add(sandbox.exchanges.at(-1)!);
      return { generation, claim, outcomes: outcomes(), status: code, isAccepted: ok };
    },
  };
}

export type TokenWorld = Awaited<ReturnType<typeof startTokenWorld>>;

/** What is left if the pair of this generation is safe, and the exchanges ended so for the service. */
export function saved(generation: number, outcomes: readonly string[]) {
  return { generation, claim: null, outcomes, status: 0, isAccepted: true };
}

/** Waits until the function no longer throws. */
export function eventually<T>(look: () => T): Promise<Awaited<T>> {
  return vi.waitFor(look, { timeout: 45_000, interval: 50 }) as Promise<Awaited<T>>;
}
