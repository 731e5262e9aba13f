import type { TokenKeeperParts } from '../../src/tokens/token-keeper.ts';
import type { Process } from './process.ts';

export type Flaw = (parts: TokenKeeperParts, by: Process) => TokenKeeperParts;

/**
 * Parts that break a promise of the token keeper or of its store, one at a time, to show that the simulator finds it.
 */
export const FLAWS: Readonly<Record<string, Flaw>> = {
  'use-before-save': (parts) => ({
    ...parts,
    store: {
      ...parts.store,
      save: async (pair) => {
        void parts.store.save(pair).catch(() => {});
        return true;
      },
    },
  }),
  'ignore-claims': (parts) => ({
    ...parts,
    store: {
      ...parts.store,
      claim: async (claim) => (await parts.store.claim(claim)) ?? { exclusive: false },
    },
  }),
  'drop-failed-saves': (parts) => ({
    ...parts,
    store: { ...parts.store, save: (pair) => parts.store.save(pair).catch(() => true) },
  }),
  'ask-nobody': (parts) => ({
    ...parts,
    store: { ...parts.store, askOthers: async () => false },
  }),
  'take-early-for-spent': (parts) => ({
    ...parts,
    checkAccess: async () => ({ kind: 'refused', detail: 'token_expired' }),
  }),
  'forget-early-refusals': (parts) => ({
    ...parts,
    store: {
      ...parts.store,
      read: async () => {
        const stored = await parts.store.read();
        return stored && { ...stored, refusedEarly: false, refusesEarly: false };
      },
      claim: (claim) => parts.store.claim({ ...claim, knowsRefusal: true }),
    },
  }),
  'no-rescue-file': (parts) => ({ ...parts, rescue: undefined }),
  'clock-stands-still-while-stopped': (parts, by) => ({
    ...parts,
    clock: { ...parts.clock, elapsed: () => parts.clock.elapsed() - by.stoppedMs },
  }),
  'log-what-is-sent': (parts) => ({
    ...parts,
    connect: async () => {
      const endpoint = await parts.connect();
      return {
        ...endpoint,
        exchange: (refreshToken, mayStillSend) => {
          parts.log.debug({ refreshToken }, 'sending');
          return endpoint.exchange(refreshToken, mayStillSend);
        },
      };
    },
  }),
  'send-again-without-answer': (parts) => ({
    ...parts,
    connect: async () => {
      const endpoint = await parts.connect();
      return {
        ...endpoint,
        exchange: async (refreshToken, mayStillSend) => {
          const outcome = await endpoint.exchange(refreshToken, mayStillSend);
          if (outcome.kind !== 'uncertain') return outcome;
          return endpoint.exchange(refreshToken, mayStillSend);
        },
      };
    },
  }),
};
