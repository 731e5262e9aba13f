import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../clock.ts';
import type { TokenStore } from './token-store.ts';

/**
 * A store whose calls all end: a disk or a network may hang, and then a promise never settles. What a call that was
 * given up does later is put right: a mark is settled, and a save changes nothing when it comes twice.
 */
export interface BoundedStore extends TokenStore {
  /** From now on nobody waits long for what only reads or marks: the process is about to end. */
  hurry(): void;
}

const LIMIT_MS = 10_000;
const HURRIED_MS = 1_000;
const STEP_MS = 250;

export function boundStore(store: TokenStore, clock: Clock): BoundedStore {
  let hurried = false;
  const bounded = <T>(work: Promise<T>) => within(clock, work, () => LIMIT_MS);
  const brief = <T>(work: Promise<T>) =>
    within(clock, work, () => (hurried ? HURRIED_MS : LIMIT_MS));

  return {
    description: store.description,
    get notices() {
      return store.notices;
    },
    get unwritable() {
      return store.unwritable;
    },
    read: () => brief(store.read()),
    holds: (saved) => brief(store.holds(saved)),
    history: (limit) => brief(store.history(limit)),
    mark: async (mark) => {
      const marking = store.mark(mark);
      try {
        return await brief(marking);
      } catch (error) {
        // Nobody sends for it any more.
        const forgo = () => store.settle(mark.attempt, { outcome: 'unsent', latencyMs: 0 });
        marking.then((marked) => marked && forgo()).catch(() => {});
        throw error;
      }
    },
    import: (imported) => bounded(store.import(imported)),
    withdraw: (set) => bounded(store.withdraw(set)),
    settle: (attempt, ending) => bounded(store.settle(attempt, ending)),
    save: (saved) => bounded(store.save(saved)),
    moveOut: (move) => bounded(store.moveOut(move)),
    moveBack: (to) => bounded(store.moveBack(to)),
    moveIn: (moved) => bounded(store.moveIn(moved)),
    close: () => store.close(),
    hurry: () => void (hurried = true),
  };
}

/**
 * What the work gives, unless that takes too long. It is waited for in steps, so that a time in which this process or
 * the machine stood still counts as one of them: when they wake, an answer may be there that nobody could take.
 *
 * @param limit ms; asked again after each step
 * @throws Error when it is given up; the work goes on all the same
 */
export function within<T>(clock: Clock, work: Promise<T>, limit: () => number): Promise<T> {
  const settled = new AbortController();
  const end = () => settled.abort();
  work.then(end, end);
  return Promise.race([work, givenUp()]);

  async function givenUp(): Promise<never> {
    // Most calls are settled by then, and need no timer.
    await setImmediate();
    for (let waited = 0; waited < limit(); waited += STEP_MS) {
      await clock.sleep(STEP_MS, settled.signal);
    }
    throw new Error(`no answer of the token store within ${limit() / 1000} s`);
  }
}
