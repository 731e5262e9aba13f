import { delegateToSchema, type CreateProxyingResolverFn } from '@graphql-tools/delegate';
import { OperationTypeNode } from 'graphql';
import { codedError } from '../errors.ts';

/** Which mutations callers may use: none, all, or these fields of the upstream. */
export type AllowedMutations = 'off' | 'all' | readonly string[];

/**
 * The resolvers of the upstream's own root fields. A mutation that is not allowed is refused before
 * anything is sent.
 */
export function guardMutations(allowed: AllowedMutations): CreateProxyingResolverFn {
  return ({ subschemaConfig, operation, fieldName }) => {
    const isRefused =
      operation === OperationTypeNode.MUTATION &&
      allowed !== 'all' &&
      (allowed === 'off' || fieldName === undefined || !allowed.includes(fieldName));
    if (isRefused) {
      return () => {
        throw codedError(
          'FORBIDDEN',
          `The mutation ${fieldName} is switched off here. The operator can allow it with MUTATIONS.`,
        );
      };
    }
    return (rootValue, args, context, info) =>
      delegateToSchema({
        schema: subschemaConfig,
        ...(operation && { operation }),
        rootValue,
        args: args as Record<string, unknown>,
        context,
        info,
      });
  };
}
