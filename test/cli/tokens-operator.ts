import { expect, onTestFinished } from 'vitest';
import { openSqliteStore } from '../../src/tokens/store/sqlite/sqlite-store.ts';
import type { TokenStore } from '../../src/tokens/store/token-store.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { secretsIn } from '../support/gateway/written.ts';
import type { FakeUpstream } from '../support/imitations/scripted.ts';
import { startScripted } from '../support/tokens/tokens.ts';

export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** An operator with a folder, a service, and the `tokens` commands. */
export interface Operator {
  readonly service: FakeUpstream;
  readonly env: Record<string, string>;
  /** The path of a file in the folder. */
  file(name: string): string;
  readonly storePath: string;
  /** Runs a `tokens` command. Its output may not contain a secret. */
  tokens(args: readonly string[], more?: Surroundings): Promise<CommandResult>;
  /** Runs one that must succeed, and returns its output. */
  done(...args: string[]): Promise<string>;
  status(): Promise<Record<string, unknown>>;
  /**
   * The store, as another process on this machine would open it. Closed after the work.
   *
   * @param now the wall clock of the store
   */
  withStore<T>(work: (store: TokenStore) => Promise<T>, now?: () => number): Promise<T>;
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
    expect(secretsIn([said.stdout + said.stderr])).toEqual([]);
    // A stack is a fault of the program, and of no use to an operator.
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
  };
}

/** An operator whose store has a set that was refreshed once: generation 2. */
export async function startWithTokens(): Promise<Operator> {
  const operator = await startOperator();
  await operator.done('import', operator.service.tokenLink);
  return operator;
}

/** Begins an exchange of the token in the store, as a process would. Returns its attempt. */
export async function beginExchange(store: TokenStore) {
  const { set, generation } = (await store.read())!;
  const attempt = 'begun-elsewhere';
  await store.claim({ set, generation, attempt, lifeMs: 150_000, replica: 'other/1' });
  return attempt;
}
