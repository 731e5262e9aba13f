import type { GraphQLError } from 'graphql';
import { isAsyncIterable } from 'graphql-yoga';
import type { ExecutionPlugin } from './execution.ts';

/** Adds the errors that found no null of their own to the answer, so that none of the upstream's is lost. */
export const appendSurplusErrors: ExecutionPlugin = {
  onExecute: ({ args }) => ({
    onExecuteDone({ result, setResult }) {
      const { surplusErrors = [] } = args.contextValue;
      if (isAsyncIterable(result)) {
        return {
          onNext: (part) => part.setResult(withErrors(part.result, surplusErrors)),
        };
      }
      setResult(withErrors(result, surplusErrors));
      return undefined;
    },
  }),
};

interface Payload {
  readonly data?: unknown;
  readonly errors?: readonly unknown[];
  readonly incremental?: readonly { readonly errors?: readonly unknown[] }[];
}

/** Takes the errors, as far as the payload has a place for them: in a later one it is its first part. */
function withErrors<P extends Payload>(payload: P, surplus: GraphQLError[]): P {
  if (surplus.length === 0) return payload;
  const { incremental } = payload;
  const [first, ...others] = incremental ?? [];
  if (first) return { ...payload, incremental: [added(first, surplus), ...others] };
  return incremental || 'data' in payload || payload.errors ? added(payload, surplus) : payload;
}

function added<P extends { readonly errors?: readonly unknown[] }>(
  payload: P,
  surplus: GraphQLError[],
): P {
  return { ...payload, errors: [...(payload.errors ?? []), ...surplus.splice(0)] };
}
