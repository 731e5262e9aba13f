import { existsSync, readdirSync } from 'node:fs';
import { expect } from 'vitest';
import { startService } from '../../service/service.ts';
import { openPostgresStore } from '../../../src/tokens/postgres.ts';
import { createSealer } from '../../../src/tokens/seal.ts';
import type { Rule } from '../../../src/tokens/state.ts';
import type { TokenStore } from '../../../src/tokens/store.ts';
import { askAt } from '../gateway/ask-at.ts';
import { personUnlikeOthers } from '../clients/unlike.ts';
import { bundled } from '../processes/bundled.ts';
import { runHere } from '../gateway/run-here.ts';
import { served, startProcess, type Program, type Served } from '../processes/process.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { older } from '../tokens/fault-world.ts';
import { startPostgres } from './server.ts';

export type Replica = Program & Served;

const A_DAY = 86_400_000;

/** A service whose access tokens are valid for a day, a PostgreSQL, and replicas that are processes. */
export async function startReplicaWorld() {
  const program = await bundled('src/process.ts');
  const ends = new AsyncDisposableStack();
  const postgres = ends.adopt(await startPostgres(), (it) => it.close());
  const service = { ahead: 0 };
  const sandbox = ends.adopt(
    await startService({ now: () => Date.now() + service.ahead, persons: 3 }),
    (it) => it.close(),
  );
  const folder = ends.use(temporaryFolder());
  const env = {
    RECRUITING_URL: sandbox.url,
    TOKEN_STORE: await postgres.emptyStore(),
    TOKEN_RESCUE_DIR: folder.file('rescue'),
    ALLOW_ANONYMOUS: 'true',
    PAGES_PER_MINUTE: '0',
    // Longer than any test: a second signal ends the delay.
    SHUTDOWN_DELAY_MS: '600000',
  };
  const withStore = async <T>(work: (store: TokenStore) => Promise<T>): Promise<T> => {
    const store = openPostgresStore(env.TOKEN_STORE, createSealer([]));
    try {
      return await work(store);
    } finally {
      await store.close();
    }
  };
  /** Changes what the store holds, as an administrator of the database could. */
  const alter = <T>(rule: Rule<T>) => withStore((store) => store.update(rule));
  const processes: Program[] = [];
  const start = (args: readonly string[], extra: Record<string, string> = {}): Program => {
    const started = ends.use(startProcess(args, { env: { ...env, ...extra } }));
    processes.push(started);
    return started;
  };

  return {
    /** Ends everything. Nothing secret may have been printed by any process. */
    [Symbol.asyncDispose]: async () => {
      await ends.disposeAsync();
      const printed = processes.map(({ said }) => said).join('\n');
      expect(printed).not.toContain(new URL(env.TOKEN_STORE).password);
      for (const { refreshToken } of sandbox.exchanges) expect(printed).not.toContain(refreshToken);
    },
    postgres,
    sandbox,
    env,
    folder,
    /** Starts a replica, and waits until it listens. */
    serve: (extra?: Record<string, string>): Promise<Replica> => served(start([program], extra)),
    /** Runs a `tokens` command in this process. */
    tokens: (args: readonly string[], extra: Record<string, string> = {}) =>
      runHere(['tokens', ...args], { ...env, ...extra }),
    /** Makes all access tokens expire: see `expire` in fault-world.ts. */
    expire: async () => {
      // First the age: a young token that is refused is tried again for a few seconds only.
      await alter(older(60_000));
      service.ahead += A_DAY;
    },
    alter,
    state: async () => (await withStore((store) => store.read())).state!,
    /** Reverts the last expiry. */
    unexpire: () => void (service.ahead -= A_DAY),
    /** How the exchanges ended for the service, from the one with this number on. */
    outcomes: (from = 0) => sandbox.exchanges.slice(from).map(({ outcome }) => outcome),
    /** The emergency files. */
    unsaved: () => (existsSync(env.TOKEN_RESCUE_DIR) ? readdirSync(env.TOKEN_RESCUE_DIR) : []),
  };
}

export type ReplicaWorld = Awaited<ReturnType<typeof startReplicaWorld>>;

/** Sends a query to each replica, and expects answers. */
export async function allServe(replicas: readonly Served[]): Promise<void> {
  const answers = await Promise.all(replicas.map(({ url }) => askAt(url, personUnlikeOthers())));
  expect(answers.map(({ errors }) => errors ?? 'served')).toEqual(replicas.map(() => 'served'));
}
