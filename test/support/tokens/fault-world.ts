import { createHash } from 'node:crypto';
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { startService, type Service } from '../../service/service.ts';
import { readPair, type Pair } from '../../../src/tokens/pair.ts';
import { createSealer } from '../../../src/tokens/seal.ts';
import { openSqliteStore } from '../../../src/tokens/sqlite.ts';
import { importPair, type Rule, type State } from '../../../src/tokens/state.ts';
import type { TokenStore } from '../../../src/tokens/store.ts';
import { bundled } from '../processes/bundled.ts';
import type { HangingOptions } from './hanging-gateway.ts';
import { askAt, type GraphqlAnswer } from '../gateway/ask-at.ts';
import { runHere } from '../gateway/run-here.ts';
import { startProcess, type Program, type ProgramOptions } from '../processes/process.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { personUnlikeOthers } from '../clients/unlike.ts';

const SERVED = { persons: { items: [{ id: expect.any(String) }] } };
const A_DAY = 86_400_000;

export interface FaultGateway extends Program {
  readonly url: string;
  ask(): Promise<GraphqlAnswer>;
  /** Sends a query, and expects an answer. */
  serves(): Promise<void>;
}

export interface FaultWorldOptions {
  /** Whether an exchange revokes the old access token at once. */
  revoke?: boolean;
}

interface ServeOptions extends Pick<ProgramOptions, 'user' | 'under'> {
  /** Settings in addition to those of the world. */
  readonly extra?: Record<string, string>;
}

/**
 * A service, a store with a set that was imported and never refreshed (so that a gateway refreshes it at once),
 * and real processes. Leaving its scope ends them all; nothing secret may have been printed or answered by any.
 */
export async function startFaultWorld({ revoke = false }: FaultWorldOptions = {}) {
  const program = await bundled('src/process.ts');
  const hangingProgram = await bundled('test/support/tokens/hanging-gateway.ts');
  const service = { ahead: 0 };
  const sandbox = await startService({
    now: () => Date.now() + service.ahead,
    revokeOnRefresh: revoke,
    persons: 3,
  });
  const folder = temporaryFolder();
  chmodSync(folder.path, 0o755);
  const own = folder.file('tokens');
  const rescue = folder.file('rescue');
  for (const path of [own, rescue]) mkdirSync(path, { mode: 0o700 });
  const path = join(own, 'tokens.db');
  const env = {
    RECRUITING_URL: sandbox.url,
    TOKEN_STORE: `sqlite:${path}`,
    TOKEN_RESCUE_DIR: rescue,
    ALLOW_ANONYMOUS: 'true',
  };
  const sealer = createSealer([]);
  const processes: Program[] = [];
  const said: string[] = [];
  /** Exchanges that the test itself made. */
  const ours = new Set<Service['exchanges'][number]>();
  const secrets = new Set([new URL(sandbox.tokenLink).pathname]);
  const learn = ({ accessToken, refreshToken }: Pair) => secrets.add(accessToken).add(refreshToken);

  const withStore = async <T>(work: (store: TokenStore) => Promise<T>) => {
    const store = openSqliteStore(path, sealer);
    try {
      return await work(store);
    } finally {
      await store.close();
    }
  };
  const stored = async (): Promise<State> => {
    const { state } = await withStore((store) => store.read());
    learn(state!.pair);
    said.push(JSON.stringify(state!.events));
    return state!;
  };
  const age = () => withStore((store) => store.update(older(60_000)));
  const pair = readPair(await (await fetch(sandbox.tokenLink)).json())!;
  learn(pair);
  await withStore((store) =>
    store.update(importPair({ pair, service: sandbox.url, by: 'test', replace: false })),
  );
  const command = async (...args: string[]) => {
    const exit = await runHere(args, env);
    said.push(exit.stdout, exit.stderr);
    return exit;
  };
  const end = async () => {
    await Promise.all(processes.map((one) => one.kill()));
    await sandbox.close();
    folder[Symbol.dispose]();
    for (const { refreshToken } of sandbox.exchanges) secrets.add(refreshToken);
    const everything = [...said, ...processes.map((one) => one.said)].join('\n');
    for (const secret of secrets) expect(everything).not.toContain(secret);
  };

  const start = async (
    args: readonly string[],
    pattern: RegExp,
    { extra = {}, ...how }: ServeOptions = {},
  ): Promise<FaultGateway> => {
    const started = startProcess(args, { env: { ...env, ...extra }, ...how });
    processes.push(started);
    const [url] = await started.printed(pattern);
    const ask = async () => {
      const answer = await askAt(url, personUnlikeOthers());
      said.push(JSON.stringify(answer));
      return answer;
    };
    const serves = async () => expect(await ask()).toEqual({ data: SERVED });
    return Object.create(started, {
      url: { value: url },
      ask: { value: ask },
      serves: { value: serves },
    }) as FaultGateway;
  };

  const outcomes = () =>
    sandbox.exchanges.filter((one) => !ours.has(one)).map(({ outcome }) => outcome);
  /** Whether the service accepts the refresh token in the store, which this spends. */
  const holdsTheLastPair = async (): Promise<boolean> => {
    const { pair: last } = await stored();
    const response = await fetch(`${sandbox.url}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: last.refreshToken }),
    });
    ours.add(sandbox.exchanges.at(-1)!);
    return response.status === 200;
  };

  return {
    [Symbol.asyncDispose]: end,
    sandbox,
    path,
    /**
     * Makes all access tokens expire: the service's clock is a day ahead from now on. The pair in the store becomes a
     * minute older, because a token that is seconds old is treated in another way.
     */
    expire: async () => {
      await age();
      service.ahead += A_DAY;
    },
    expireAtService: () => void (service.ahead += A_DAY),
    age,
    /** How the exchanges ended for the service. */
    outcomes,
    /** What is left once all gateways have ended: see `saved`. Spends the refresh token. */
    left: async () => {
      const { generation, claim } = await stored();
      const { code } = await command('tokens', 'status');
      const isLast = await holdsTheLastPair();
      return { generation, claim, outcomes: outcomes(), status: code, isLast };
    },
    /** An administrator makes a new token. Returns its link. */
    makeNewSet: (): string => {
      const link = sandbox.makeNewSet();
      secrets.add(new URL(link).pathname);
      return link;
    },
    stored,
    /** Ends the time in which the claim of a process blocks the others. */
    claimIsOver: () => withStore((store) => store.update(claimIsOver)),
    /** Starts the program. */
    start: (args: readonly string[] = [], { extra = {}, ...how }: ServeOptions = {}) => {
      const started = startProcess([program, ...args], { env: { ...env, ...extra }, ...how });
      processes.push(started);
      return started;
    },
    /** Starts the gateway, and waits until it serves. */
    serve: (options: ServeOptions = {}) =>
      start([program], /http:\/\/[^\s"]+\/graphql(?=[\s"])/, options),
    /** Starts the gateway that hangs, and waits until it serves. */
    hanging: (options: HangingOptions = {}, user?: number) =>
      start([hangingProgram, JSON.stringify(options)], /(?<=SERVING )\S+/, { user }),
    /** Runs a command in this process. */
    command,
    /** The number of emergency files. */
    unsaved: () => readdirSync(rescue).length,
    holdsTheLastPair,
    /** Gives all files to a user. */
    give: (user: number) => {
      for (const place of filesOf(own, rescue)) chownSync(place, user, user);
    },
    /** Removes or restores the owner's permission to write. */
    writable: (yes: boolean) => {
      for (const place of filesOf(own)) {
        const isFolder = statSync(place).isDirectory();
        chmodSync(place, (isFolder ? 0o500 : 0o400) | (yes ? 0o200 : 0));
      }
    },
    /** Every file beside the store, and a hash of its bytes. */
    files: () =>
      readdirSync(own).map((name) => {
        const bytes = readFileSync(join(own, name));
        return [name, createHash('sha256').update(bytes).digest('hex')] as const;
      }),
  };
}

export const claimIsOver: Rule<undefined> = (state, now) => {
  const next = { ...state!, claim: { ...state!.claim!, until: now } };
  return { next, result: undefined };
};

export function older(ms: number): Rule<undefined> {
  return (state) => {
    const { savedAt, expiresAt } = state!;
    const next = { ...state!, savedAt: savedAt - ms, expiresAt: expiresAt - ms };
    return { next, result: undefined };
  };
}

/** What is left if the pair of this generation is safe, and the exchanges ended so for the service. */
export function saved(generation: number, outcomes: readonly string[]) {
  return { generation, claim: null, outcomes, status: 0, isLast: true };
}

/** Waits until the function no longer throws. */
export function eventually<T>(look: () => T): Promise<Awaited<T>> {
  return vi.waitFor(look, { timeout: 45_000, interval: 50 }) as Promise<Awaited<T>>;
}

export type FaultWorld = Awaited<ReturnType<typeof startFaultWorld>>;

function filesOf(...folders: string[]): string[] {
  return folders.flatMap((folder) => [
    folder,
    ...readdirSync(folder).map((name) => join(folder, name)),
  ]);
}
