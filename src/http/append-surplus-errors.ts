import type { GraphQLError } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';

/** Adds the errors that found no null of their own to the answer, so that none of the upstream's is lost. */
export const appendSurplusErrors: Plugin<{ readonly surplusErrors: readonly GraphQLError[] }> = {
  onExecute: ({ args }) => ({
    onExecuteDone({ result, setResult }) {
      const { surplusErrors } = args.contextValue;
      if (surplusErrors.length === 0 || isAsyncIterable(result)) return;
      setResult({ ...result, errors: [...(result.errors ?? []), ...surplusErrors] });
    },
  }),
};
