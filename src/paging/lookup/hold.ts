import type { FetchPage } from '../page.ts';
import { unlessAborted, WALK_LEFT } from '../failures.ts';

/** Lets requests out only while somebody waits for what they bring. */
export interface Hold {
  /** Somebody waits. */
  release(): void;
  /** Nobody waits any more. What is under way may come. */
  pause(): void;
  /** Who waited has left: what is under way is aborted, and asked again when somebody waits for it. */
  leave(): void;
  /** Aborted when they leave; of a later request it is another one. */
  readonly left: AbortSignal;
  readonly held: <R>(fetchPage: FetchPage<R>) => FetchPage<R>;
}

export function createHold(): Hold {
  const state = { gate: closed(), leaving: new AbortController() };
  const pause = () => {
    state.gate ??= closed();
  };
  return {
    pause,
    get left() {
      return state.leaving.signal;
    },
    release: () => {
      state.gate?.resolve();
      state.gate = undefined;
    },
    leave: () => {
      pause();
      state.leaving.abort(WALK_LEFT);
      state.leaving = new AbortController();
    },
    held: (fetchPage) => async (request, signal) => {
      for (;;) {
        while (state.gate) await unlessAborted(state.gate.promise, signal);
        const left = state.leaving.signal;
        try {
          return await fetchPage(request, AbortSignal.any([signal, left]));
        } catch (error) {
          if (signal.aborted || !left.aborted) throw error;
        }
      }
    },
  };
}

function closed(): PromiseWithResolvers<void> | undefined {
  return Promise.withResolvers<void>();
}
