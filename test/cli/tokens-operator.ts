import { expect, onTestFinished } from 'vitest';
import { emergencyIn } from '../../src/tokens/emergency.ts';
import { createSealer } from '../../src/tokens/seal.ts';
import { openSqliteStore } from '../../src/tokens/sqlite.ts';
import { takeClaim, type State } from '../../src/tokens/state.ts';
import type { TokenStore } from '../../src/tokens/store.ts';
import { startService } from '../service/service.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { secretsIn } from '../support/gateway/written.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** What a command is given beside its arguments. */
interface Given {
  readonly env?: Record<string, string>;
  readonly stdin?: readonly string[];
}

/** An operator with a folder, a service, and the `tokens` commands. */
export type Operator = Awaited<ReturnType<typeof startOperator>>;

export async function startOperator() {
  const service = await startService({ persons: 3 });
  onTestFinished(() => service[Symbol.asyncDispose]());
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const storePath = folder.file('tokens.db');
  const env = { RECRUITING_URL: service.url, TOKEN_STORE: `sqlite:${storePath}` };

  /** Runs a `tokens` command. Its output may not contain a secret. */
  const tokens = async (args: readonly string[], { env: more, stdin = [] }: Given = {}) => {
    const said = await runHere(['tokens', ...args], { ...env, ...more }, { stdin });
    expect(secretsIn([said.stdout + said.stderr])).toEqual([]);
    // A stack is a fault of the program, and of no use to an operator.
    expect(said.stderr).not.toMatch(/^\s+at /m);
    return said;
  };
  /** The store, as another process on this machine would open it. Closed after the work. */
  const withStore = async <T>(work: (store: TokenStore) => Promise<T>): Promise<T> => {
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
    /** The path of a file in the folder. */
    file: folder.file,
    storePath,
    /** The emergency folder: the one of the store. */
    emergency: emergencyIn(folder.path, createSealer([])),
    tokens,
    /** Runs one that must succeed, and returns its output. */
    done: async (...args: string[]) => {
      const { code, stdout, stderr } = await tokens(args);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      return stdout;
    },
    status: async () => JSON.parse((await tokens(['status', '--json'])).stdout) as object,
    withStore,
    stored: () => withStore(async (store) => (await store.read()).state!),
    /** Changes what the store holds, as only time or other processes can. */
    alter: (changes: Partial<State> | ((state: State) => Partial<State>)) =>
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
