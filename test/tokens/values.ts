import type { Pair } from '../../src/tokens/pair.ts';
import {
  importPair,
  save,
  successor,
  takeClaim,
  type Rule,
  type State,
} from '../../src/tokens/state.ts';

export const SERVICE = 'https://recruiting.test';
export const NOON = Date.UTC(2026, 0, 1, 12);
/** Seconds. */
export const LIFE = 86_400;

/** A pair whose tokens have this name in them. */
export function pairOf(name: string, changes: Partial<Pair> = {}): Pair {
  return {
    accessToken: `access-${name}`,
    refreshToken: `refresh-${name}`,
    expiresIn: LIFE,
    refreshTokenExpiresIn: 120 * 86_400,
    ...changes,
  };
}

export const importOf = (name: string, replace = false) =>
  importPair({ pair: pairOf(name), service: SERVICE, by: 'office/1', replace });

export const claimOf = (attempt: string, generation: number, over: string | null = null) =>
  takeClaim({ attempt, generation, over, by: 'host/1' });

export const saveOf =
  (state: State, name: string): Rule<State> =>
  (before, now) =>
    save(successor(state, pairOf(name), now), 'host/1')(before, now);

/** A state of generation 1, imported at noon. */
export function imported(name = '1', now = NOON): State {
  return importOf(name)(null, now).next!;
}

/** A state of generation 2, exchanged at noon. */
export function exchanged(name = '2', now = NOON): State {
  const first = imported('1', now);
  return saveOf(first, name)(first, now).result;
}
