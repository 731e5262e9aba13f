import { createSealer } from '../../../src/tokens/seal.ts';
import { openSqliteStore } from '../../../src/tokens/sqlite.ts';
import type { Rule, State } from '../../../src/tokens/state.ts';
import type { TokenStore } from '../../../src/tokens/store.ts';

export function memoryStore(now: () => number = Date.now): TokenStore {
  return openSqliteStore(':memory:', createSealer([]), { now });
}

/** A store as another process sees it. */
export function storeAccess(store: TokenStore) {
  const update = <T>(rule: Rule<T>) => store.update(rule);
  return {
    stored: async () => (await store.read()).state!,
    /** Changes what the store holds, as another process does. */
    update,
    /** Changes what the store holds, as only time or an administrator of the database can. */
    alter: (changes: (state: State, now: number) => Partial<State>) =>
      update((state, now) => ({ next: { ...state!, ...changes(state!, now) }, result: undefined })),
  };
}

/** A store in memory. While it is broken, whoever uses the pair that it holds gets an unexpected error. */
export function breakableStore(message: string) {
  const store = memoryStore();
  const broken = { is: false };
  const read = async () => {
    const { state, now } = await store.read();
    return { state: state && withPair(state), now };
  };
  const withPair = (state: State): State =>
    Object.defineProperty({ ...state }, 'pair', {
      get: () => {
        if (broken.is) throw new Error(message);
        return state.pair;
      },
    });
  return { store: { ...store, read }, broken };
}
