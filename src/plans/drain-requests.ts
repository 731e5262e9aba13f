import type { Pace } from '../paging/pace.ts';
import type { Asking, SendRequest } from './call.ts';

/**
 * Requests of a walk, which belongs to nobody alone; each ends with the signal that is given for it.
 *
 * @param pay charges those who wait for the walk; where nobody can pay, it aborts the signal
 * @param cause of whoever began it
 */
export function drainRequests(
  send: SendRequest,
  pace: Pace,
  signalNow: () => AbortSignal,
  pay: (pages: number) => void,
  cause: unknown,
): Asking {
  return {
    cause,
    ask: async (request) => {
      const signal = signalNow();
      pay(request.pages);
      signal.throwIfAborted();
      const paced = pace.begin();
      const onPressure = paced.pressed;
      const answer = await send(request, { signal, priority: 'drain', onPressure, cause });
      paced.arrived();
      return answer;
    },
  };
}
