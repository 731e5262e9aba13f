import type { ExecutionRequest } from '@graphql-tools/utils';
import type { Pace } from '../paging/pace.ts';
import type { AskingContext } from './asking/asking-context.ts';
import type { UpstreamLink } from './asking/upstream-link.ts';

/**
 * Requests of a walk, which belongs to nobody alone; each ends with the signal that is given for it.
 *
 * @param pay makes those pay who wait for the walk; where nobody can, it aborts the signal
 * @param cause of whoever began it
 */
export function drainRequests(
  link: UpstreamLink,
  pace: Pace,
  signalNow: () => AbortSignal,
  pay: (pages: number) => void,
  cause: unknown,
): AskingContext {
  return {
    cause,
    requests: {
      load: async ({ document, variables }) => {
        const signal = signalNow();
        pay(link.price(document)(variables));
        signal.throwIfAborted();
        const request = pace.begin();
        const context = {
          signal,
          priority: 'drain',
          onPressure: request.pressed,
          cause,
        };
        const result = await link.execute({
          document,
          variables,
          operationType: 'query',
          context,
        } as ExecutionRequest);
        request.arrived();
        return result;
      },
    },
  };
}
