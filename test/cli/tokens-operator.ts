import { expect, onTestFinished } from 'vitest';
import { emergencyIn, type Emergency } from '../../src/tokens/emergency.ts';
import { createSealer } from '../../src/tokens/seal.ts';
import { openSqliteStore } from '../../src/tokens/sqlite.ts';
import { takeClaim, type State } from '../../src/tokens/state.ts';
import type { TokenStore } from '../../src/tokens/store.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { secretsIn } from '../support/gateway/written.ts';
import { startService, type Service } from '../service/service.ts';

export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** An operator with a folder, a service, and the `tokens` commands. */
export interface Operator {
  readonly service: Service;
  readonly env: Record<string, string>;
  /** The path of a file in the folder. */
  file(name: string): string;
  readonly storePath: string;
  /** The emergency folder: the one of the store. */
  readonly emergency: Emergency;
  /** Runs a `tokens` command. Its output may not contain a secret. */
  tokens(args: readonly string[], more?: Surroundings): Promise<CommandResult>;
  /** Runs one that must succeed, and returns its output. */
  done(...args: string[]): Promise<string>;
  status(): Promise<Record<string, unknown>>;
  /** The store, as another process on this machine would open it. Closed after the work. */
  withStore<T>(work: (store: TokenStore) => Promise<T>): Promise<T>;
  stored(): Promise<State>;
  /** Changes what the store holds, as only time or other processes can. */
  alter(changes: Partial<State> | ((state: State) => Partial<State>)): Promise<void>;
}

interface Surroundings {
  env?: Record<string, string>;
  stdin?: readonly string[];
}

export async function startOperator(): Promise<Operator> {
  const service = await startService({ persons: 3 });
  onTestFinished(() => service[Symbol.asyncDispose]());
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
  const withStore = async <T>(work: (store: TokenStore) => Promise<T>) => {
    const store = openSqliteStore(storePath, createSealer([]));
    try {
      return await work(store);
    } finally {
      await store.close();
    }
  };

  return {
    service,
    env,
    file: folder.file,
    storePath,
    emergency: emergencyIn(folder.path, createSealer([])),
    tokens,
    done: async (...args) => {
      const { code, stdout, stderr } = await tokens(args);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      return stdout;
    },
    status: async () =>
      JSON.parse((await tokens(['status', '--json'])).stdout) as Record<string, unknown>,
    withStore,
    stored: () => withStore(async (store) => (await store.read()).state!),
    alter: (changes) =>
      withStore((store) =>
        store.update((state) => {
          const changed = typeof changes === 'function' ? changes(state!) : changes;
          return { next: { ...state!, ...changed }, result: undefined };
        }),
      ),
  };
}

/** An operator whose store has a set that was refreshed once: generation 2. */
export async function startWithTokens(): Promise<Operator> {
  const operator = await startOperator();
  await operator.done('import', operator.service.tokenLink);
  return operator;
}

/** Begins an exchange of the token in the store, as a process would. */
export async function beginExchange({ withStore, stored }: Operator): Promise<void> {
  const { generation } = await stored();
  const claim = { attempt: 'begun-elsewhere', generation, over: null, by: 'other/1' };
  expect(await withStore((store) => store.update(takeClaim(claim)))).toBe(true);
}
