import { buildASTSchema, parse } from 'graphql';
import type { GraphQLSchema } from 'graphql';
import type { CursorBehaviour } from './cursors.ts';
import { pageOf } from './pages.ts';
import type { PageArguments } from './pages.ts';
import type { PersonList } from './person-list.ts';

/** The published part of the interface: one list of persons. */
export function personsSchema(list: PersonList, behaviour: CursorBehaviour): GraphQLSchema {
  const schema = buildASTSchema(document, { assumeValidSDL: true });
  const persons = schema.getQueryType()?.getFields()['persons'];
  if (persons === undefined) throw new Error('The schema of the sandbox has lost its persons.');
  persons.resolve = (_root: unknown, args: PageArguments) => pageOf(list, args, behaviour);
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

const document = parse(personsSdl, { noLocation: true });
