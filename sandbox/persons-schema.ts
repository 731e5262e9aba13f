import { buildSchema, type GraphQLSchema } from 'graphql';
import { pageOf, type CursorBehaviour, type PageArguments } from './cursors.ts';
import type { PersonList } from './person-list.ts';

/** The published part of the interface: one list of persons. */
export function personsSchema(list: PersonList, behaviour: CursorBehaviour): GraphQLSchema {
  const schema = buildSchema(personsSdl);
  schema.getQueryType()!.getFields()['persons']!.resolve = (_root, args: PageArguments) =>
    pageOf(list, args, behaviour);
  return schema;
}

export const personsSdl = /* GraphQL */ `
  type Query {
    "The persons, a page at a time."
    persons(
      "From 1 to 50. More than 50 counts as 50, and so does leaving it out."
      first: Int
      "The endCursor of the page before."
      after: String
    ): PersonPage!
  }

  type PersonPage {
    items: [Person!]!
    pageInfo: PageInfo!
  }

  type Person {
    id: ID!
    firstName: String
  }

  type PageInfo {
    "How many elements a full page has, after the limit was applied."
    first: Int!
    "Whether the page after this one has elements."
    hasNextPage: Boolean!
    "Points at the last element of this page; null when it has none."
    endCursor: String
  }
`;
