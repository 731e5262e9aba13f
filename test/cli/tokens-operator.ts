import { expect, onTestFinished } from 'vitest';
import { openSqliteStore } from '../../src/tokens/store/sqlite/sqlite-store.ts';
import type { TokenStore } from '../../src/tokens/store/token-store.ts';
import { runHere, startServe, temporaryFolder } from '../support/processes/process.ts';
import { startScripted, type ScriptedService } from '../support/tokens/tokens.ts';

export interface Said {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Somebody with a folder, a service, and the `tokens` commands. */
export interface Operator {
  readonly service: ScriptedService;
  readonly env: Record<string, string>;
  /** Of a file in the folder. */
  file(name: string): string;
  readonly storePath: string;
  /** A `tokens` command. Nothing secret may be in what it says. */
  tokens(args: readonly string[], more?: Surroundings): Promise<Said>;
  /** The same where it must end well. Gives what it says. */
  done(...args: string[]): Promise<string>;
  status(): Promise<Record<string, unknown>>;
  /**
   * The store, as another process on this machine would have it. Closed when the work is done.
   *
   * @param now the wall clock of the store
   */
  withStore<T>(work: (store: TokenStore) => Promise<T>, now?: () => number): Promise<T>;
  /** A gateway on the store, as a process of its own. */
  startGateway(env?: Record<string, string>): ReturnType<typeof startServe>;
}

interface Surroundings {
  env?: Record<string, string>;
  stdin?: readonly string[];
}

export async function startOperator(): Promise<Operator> {
  const service = await startScripted();
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const storePath = folder.file('tokens.db');
  const env = { RECRUITING_URL: service.url, TOKEN_STORE: `sqlite:${storePath}` };

  const tokens = async (args: readonly string[], { env: more = {}, stdin }: Surroundings = {}) => {
    const said = await runHere(['tokens', ...args], { ...env, ...more }, stdin);
    for (const secret of service.secrets) expect(said.stdout + said.stderr).not.toContain(secret);
    // A fault of the program, and nothing for an operator.
    expect(said.stderr).not.toMatch(/^\s+at /m);
    return said;
  };

  return {
    service,
    env,
    file: folder.file,
    storePath,
    tokens,
    done: async (...args) => {
      const { code, stdout, stderr } = await tokens(args);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      return stdout;
    },
    status: async () =>
      JSON.parse((await tokens(['status', '--json'])).stdout) as Record<string, unknown>,
    withStore: async (work, now = Date.now) => {
      const store = openSqliteStore(storePath, { now });
      try {
        return await work(store);
      } finally {
        await store.close();
      }
    },
    startGateway: async (more = {}) => {
      const gateway = await startServe({ env: { ...env, ALLOW_ANONYMOUS: 'true', ...more } });
      onTestFinished(() => gateway[Symbol.asyncDispose]());
      return gateway;
    },
  };
}

/** With a set in the store that was refreshed once: generation 2. */
export async function startWithTokens(): Promise<Operator> {
  const operator = await startOperator();
  await operator.done('import', operator.service.tokenLink);
  return operator;
}

/** Begins an exchange of what is in the store, as a process would. Gives its attempt. */
export async function beginExchange(store: TokenStore) {
  const { set, generation } = (await store.read())!;
  const attempt = 'begun-elsewhere';
  await store.claim({ set, generation, attempt, lifeMs: 150_000, replica: 'other/1' });
  return attempt;
}
