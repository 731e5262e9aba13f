import type { Pace } from '../paging/page-index/prefetch-pages.ts';
import type { Asker, Asking, SendRequest } from './call.ts';

/**
 * Requests of a walk, which belongs to nobody alone; each ends with the signal that is given for it.
 *
 * @param pay charges those who wait for the walk; where nobody can pay, it aborts the signal
 */
export function drainRequests(
  send: SendRequest,
  pace: Pace,
  signalNow: () => AbortSignal,
  pay: (pages: number) => void,
  asker: Asker,
): Asking {
  return {
    ...asker,
    ask: async (request) => {
      const signal = signalNow();
      pay(request.pages);
      signal.throwIfAborted();
      const paced = pace.begin();
      const onPressure = paced.pressed;
      const answer = await send(request, { ...asker, signal, priority: 'drain', onPressure });
      paced.arrived();
      return answer;
    },
  };
}
