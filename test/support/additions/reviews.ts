import type { SubschemaConfig } from '@graphql-tools/delegate';
import type { ExecutionRequest } from '@graphql-tools/utils';
import { buildSchema, execute, print, type ExecutionResult } from 'graphql';

/** A second service, which knows reviews of people by their ids. */
export interface Reviews extends SubschemaConfig {
  /** Every operation that it received, as text, with the variables. */
  readonly requests: { readonly text: string; readonly variables: Record<string, unknown> }[];
}

const SDL = `
  type Query { topReviews: [Review!]! reviewed(ids: [ID!]!): [Person]! reviewedOne(id: ID!): Person }
  type Review { id: ID! body: String! person: Person! }
  type Person { id: ID! rating: Int! reviews(first: Int): [Review!]! }
`;

/** The rating of a person, as the service has it. */
export function ratingOf(id: string): number {
  return Buffer.from(id).reduce((sum, byte) => sum + byte, 0);
}

interface ReviewsOptions {
  /** The ids of people with reviews, in the order of `topReviews`. */
  readonly people?: readonly string[];
}

export function reviews({ people = [] }: ReviewsOptions = {}): Reviews {
  const schema = buildSchema(SDL);
  const requests: Reviews['requests'] = [];
  const review = (id: string, nth = 0) => ({
    id: `r${nth}-${id}`,
    body: `about ${id}`,
    person: () => person(id),
  });
  const person = (id: string) => ({
    id,
    rating: ratingOf(id),
    reviews: ({ first = 1 }: { first?: number }) =>
      Array.from({ length: first }, (_, nth) => review(id, nth)),
  });
  const rootValue = {
    topReviews: () => people.map((id) => review(id)),
    reviewedOne: ({ id }: { id: string }) => person(id),
    reviewed: ({ ids }: { ids: string[] }) => ids.map(person),
  };
  const executor = ({ document, variables }: ExecutionRequest) => {
    requests.push({
      text: print(document),
      variables: (variables ?? {}) as Record<string, unknown>,
    });
    return execute({ schema, document, rootValue, variableValues: variables }) as ExecutionResult;
  };
  return {
    schema,
    executor: executor as SubschemaConfig['executor'] & object,
    merge: {
      Person: {
        selectionSet: '{ id }',
        fieldName: 'reviewed',
        key: ({ id }: { id: string }) => id,
        argsFromKeys: (ids: readonly unknown[]) => ({ ids }),
      },
    },
    requests,
  };
}
