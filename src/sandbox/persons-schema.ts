import { buildSchema, GraphQLError } from 'graphql';
import type { GraphQLSchema } from 'graphql';
import { cursorsThat } from './cursors.ts';
import type { CursorBehaviour } from './cursors.ts';
import type { Person } from './person.ts';
import type { PersonList } from './person-list.ts';

export function personsSchema(list: PersonList, behaviour: CursorBehaviour): GraphQLSchema {
  const schema = buildSchema(sdl);
  const cursors = cursorsThat(behaviour, list);
  const persons = schema.getQueryType()?.getFields()['persons'];
  if (persons === undefined) throw new Error('The schema of the sandbox has lost its persons.');

  persons.resolve = (_root: unknown, { first, after }: PersonsArguments): PersonPage => {
    const size = pageSize(first);
    const start = after == null ? 0 : cursors.startAfter(after);
    const items = list.slice(start, start + size);
    const end = start + items.length;
    return {
      items,
      pageInfo: {
        first: size,
        hasNextPage: items.length > 0 && end < list.length,
        endCursor: items.length > 0 ? cursors.pointAt(end - 1) : null,
      },
    };
  };
  return schema;
}

const sdl = /* GraphQL */ `
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

interface PersonsArguments {
  first?: number | null;
  after?: string | null;
}

interface PersonPage {
  items: Person[];
  pageInfo: { first: number; hasNextPage: boolean; endCursor: string | null };
}

const largestPage = 50;

function pageSize(first: number | null | undefined): number {
  if (first == null) return largestPage;
  if (first < 1) {
    throw new GraphQLError(`first must be from 1 to ${largestPage}, and it is ${first}.`);
  }
  return Math.min(first, largestPage);
}
