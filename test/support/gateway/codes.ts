import type { GraphQLError } from 'graphql';

export function codesOf({
  errors = [],
}: {
  errors?: readonly Pick<GraphQLError, 'extensions'>[];
}): unknown[] {
  return errors.map(({ extensions }) => extensions['code']);
}
