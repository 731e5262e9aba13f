import { buildSchema, GraphQLError, type GraphQLSchema } from 'graphql';
import { personOf, type Person } from './persons.ts';

interface PageArguments {
  readonly first?: number | null;
  readonly after?: string | null;
}

/** Reads persons behind a position that an earlier page ended with; null: from the start. */
export type ReadPersons = (
  after: string | null,
  size: number,
) => { readonly items: readonly Person[]; readonly hasNextPage: boolean; readonly end: string };

/** Reads made-up persons, who never change. A position is the number of persons in front of it. */
export function madeUpPersons(count: number): ReadPersons {
  return (after, size) => {
    const start = Number(after ?? 0);
    const end = Math.min(count, start + size);
    const items = Array.from({ length: end - start }, (_, index) => personOf(start + index));
    return { items, hasNextPage: end < count, end: String(end) };
  };
}

const LIMIT = 50;

/** The published part of the interface: one list of persons. */
export function personsSchema(read: ReadPersons): GraphQLSchema {
  const schema = buildSchema(personsSdl);
  const { persons } = schema.getQueryType()!.getFields();
  persons!.resolve = (_root, { first, after }: PageArguments) => {
    const size = Math.min(first ?? LIMIT, LIMIT);
    if (size < 1) throw new GraphQLError(`first must be from 1 to ${LIMIT}, and it is ${first}.`);
    const { items, hasNextPage, end } = read(after == null ? null : unseal(after), size);
    const endCursor = items.length > 0 ? seal(end) : null;
    return { items, pageInfo: { first: size, hasNextPage, endCursor } };
  };
  return schema;
}

function seal(position: string): string {
  return Buffer.from(`behind:${position}`).toString('base64url');
}

function unseal(cursor: string): string {
  const [, position = ''] = Buffer.from(cursor, 'base64url').toString('utf8').split(':');
  // Buffer ignores characters that are not base64url, so a cursor is intact only if it seals back to itself.
  if (seal(position) !== cursor) throw new GraphQLError('The cursor given as after is malformed.');
  return position;
}

const personsSdl = /* GraphQL */ `
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
