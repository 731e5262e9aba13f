import { within, type Clock } from '../../clock.ts';
import type { TokenStore } from './token-store.ts';

/**
 * A store whose calls all end: a disk or a network may hang, and then a promise never settles. A call that was given up
 * may still succeed later: such a claim is ended, and a save changes nothing when it is repeated.
 */
export interface BoundedStore extends TokenStore {
  askOthers(): Promise<boolean>;
  /** From now on every call but a save is given up after a second: the process is about to end. */
  hurry(): void;
}

const LIMIT_MS = 10_000;
const HURRIED_MS = 1_000;
const WHOSE = 'the token store';

export function boundStore(store: TokenStore, clock: Clock): BoundedStore {
  let hurried = false;
  const brief = <T>(work: Promise<T>) =>
    within(clock, work, () => (hurried ? HURRIED_MS : LIMIT_MS), WHOSE);

  return {
    description: store.description,
    behind: store.behind,
    get notices() {
      return store.notices;
    },
    get unwritable() {
      return store.unwritable;
    },
    read: () => brief(store.read()),
    askOthers: async () => (store.askOthers ? brief(store.askOthers()) : false),
    holds: (saved) => brief(store.holds(saved)),
    history: (limit) => brief(store.history(limit)),
    claim: async (claim) => {
      const claiming = store.claim(claim);
      try {
        return await brief(claiming);
      } catch (error) {
        // Nothing is sent for it any more.
        const forgo = () => store.endAttempt(claim.attempt, { outcome: 'unsent', latencyMs: 0 });
        claiming.then((claimed) => claimed && forgo()).catch(() => {});
        throw error;
      }
    },
    import: (imported) => brief(store.import(imported)),
    withdraw: (set) => brief(store.withdraw(set)),
    endAttempt: (attempt, ending) => brief(store.endAttempt(attempt, ending)),
    save: (saved) => within(clock, store.save(saved), () => LIMIT_MS, WHOSE),
    moveOut: (move) => brief(store.moveOut(move)),
    moveBack: (to) => brief(store.moveBack(to)),
    moveIn: (moved) => brief(store.moveIn(moved)),
    watch: (onChange) => store.watch?.(onChange),
    close: () => store.close(),
    hurry: () => void (hurried = true),
  };
}
