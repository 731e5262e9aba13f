import type { KeeperParts } from '../../../src/tokens/keeper.ts';
import type { Rule, State } from '../../../src/tokens/state.ts';
import { kindOf, type Kind } from './database.ts';
import type { Process } from './process.ts';

export type Flaw = (parts: KeeperParts, by: Process) => KeeperParts;

/** Parts that break a promise of the token keeper, one at a time, to show that the simulator finds it. */
export const FLAWS: Readonly<Record<string, Flaw>> = {
  'use-before-save': (parts) => ({
    ...withUpdate(parts, 'save', (update, predicted) => {
      void update().catch(() => {});
      return predicted;
    }),
    // Its emergency file would hide it.
    emergency: { ...parts.emergency, put: () => true },
  }),
  'ignore-claims': (parts) => ({
    ...parts,
    store: {
      ...parts.store,
      update: async (rule) => {
        const result = await parts.store.update(rule);
        return typeof result === 'object' &&
          result !== null &&
          'result' in result &&
          result.result === false
          ? { ...result, result: true }
          : result;
      },
    },
  }),
  'drop-failed-saves': (parts) =>
    withUpdate(parts, 'save', (update, predicted) => update().catch(() => predicted)),
  'no-emergency-file': (parts) => ({
    ...parts,
    emergency: { ...parts.emergency, put: () => true },
  }),
  'clock-stands-still-while-stopped': (parts, by) => ({
    ...parts,
    clock: { ...parts.clock, elapsed: () => parts.clock.elapsed() - by.stoppedMs },
  }),
  'log-what-is-sent': (parts) => ({
    ...parts,
    service: {
      ...parts.service,
      exchange: (pair, maySend) => {
        parts.log.debug({ refreshToken: pair.refreshToken }, 'sending');
        return parts.service.exchange(pair, maySend);
      },
    },
  }),
  'send-again-without-answer': (parts) => ({
    ...parts,
    service: {
      ...parts.service,
      exchange: async (pair, maySend) => {
        const outcome = await parts.service.exchange(pair, maySend);
        return outcome.kind === 'unclear' ? parts.service.exchange(pair, maySend) : outcome;
      },
    },
  }),
  'ask-a-service-twice-that-revokes': (parts) => ({
    ...parts,
    service: { ...parts.service, revokesOnReuse: false },
  }),
  'never-put-back': (parts) =>
    withUpdate(parts, 'put back', async (_update, predicted) => predicted),
  'claims-are-freed-early': (parts) => {
    return {
      ...parts,
      store: {
        ...parts.store,
        read: async () => {
          const { state, now } = await parts.store.read();
          return { state: freed(state, now), now };
        },
        update: (rule) => parts.store.update((state, now) => rule(freed(state, now), now)),
      },
    };
  },
  'missing-row-throws': (parts) => ({
    ...parts,
    store: {
      ...parts.store,
      read: async () => {
        const reading = await parts.store.read();
        if (reading.state === null) throw new Error('the row was removed');
        return reading;
      },
    },
  }),
  'send-later-than-25-s': (parts) => ({
    ...parts,
    service: { ...parts.service, exchange: (pair) => parts.service.exchange(pair, () => true) },
  }),
};

/** Forgets a claim after 10 s. */
function freed(state: State | null, now: number): State | null {
  const isOld = state?.claim && state.claim.until - now < 140_000;
  return isOld ? { ...state, claim: null } : state;
}

/** Replaces the transactions of a kind. `predicted` is what the rule would return if it were committed now. */
function withUpdate(
  parts: KeeperParts,
  kind: Kind,
  instead: <T>(update: () => Promise<T>, predicted: Promise<T>) => Promise<T>,
): KeeperParts {
  const { store } = parts;
  const update = async <T>(rule: Rule<T>): Promise<T> => {
    const { state, now } = await store.read().catch(() => ({ state: null, now: 0 }));
    const { next, result } = rule(state, now);
    const whole = () => store.update(rule);
    return kindOf(state, next) === kind ? instead(whole, Promise.resolve(result)) : whole();
  };
  return { ...parts, store: { ...store, update } };
}
