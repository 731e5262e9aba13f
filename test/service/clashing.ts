import { print, visit, type GraphQLFieldResolver } from 'graphql';
import { makeExecutableSchema, personPages } from './lists.ts';

type Resolver = GraphQLFieldResolver<never, unknown, never>;

/** Names with a meaning in JavaScript or its libraries, but not in GraphQL. */
const NAMES =
  'then constructor toString toJSON hasOwnProperty prototype length data errors extensions query variables null'.split(
    ' ',
  );
const fieldsOf = (fields: (name: string) => string) => NAMES.map(fields).join(' ');

/**
 * Names that mean something elsewhere, root types with other names and below other types, and arguments of every kind.
 * A field without a resolver returns its arguments.
 */
const SDL = `
  "All about people."
  schema { query: QueryRoot mutation: Changes }
  scalar Json
  enum Colour { RED BLUE }
  input Odd { ${fieldsOf((name) => `${name}: Json`)} }
  input Some { a: String = "A" b: [String] c: String! list: [Colour!] = [RED] inner: Some }
  type QueryRoot {
    ${fieldsOf((name) => `${name}: Json odd_${name}(${name}: Json, in: Odd): Json`)}
    some(in: Some = { c: "whole" }, or: Some!): Json
    given(id: ID, lists: [[Int]], strict: String! = "Hello", texts: [String!], of: [Colour!] = RED): Json
    asUser(id: Int!): QueryRoot users: [QueryRoot!] name: String
    door: Changes either: Either persons(first: Int, after: ID): Persons!
  }
  type Changes { self: Changes add(n: Int!): Int put(n: Int!): Payload }
  type Payload { sum: Int self: Changes query: QueryRoot }
  type Inner { door: Changes }
  union Either = Inner | Changes
  type Person { id: ID! }
  type Persons { items: [Person!]! pageInfo: Position! }
  type Position { hasNextPage: Boolean! endCursor: String }`;

/** What only the service knows: its directives, and the names of operations. */
const FORWARDED = `
  directive @inContext(country: String) on QUERY | MUTATION
  directive @tag(name: String!) repeatable on
    FIELD | FRAGMENT_SPREAD | INLINE_FRAGMENT | FRAGMENT_DEFINITION | VARIABLE_DEFINITION
  directive @spread(name: String!) on FRAGMENT_SPREAD
  directive @inline(name: String!) on INLINE_FRAGMENT
  directive @fragment(name: String!) on FRAGMENT_DEFINITION
  extend type QueryRoot { operation(x: Int): String seen(first: Int): String }
  interface Adding { add(n: Int!): Int }
  extend type Changes implements Adding { operation: String seen: String }`;

/** Types with names that subgraphs, Relay or GraphQL itself have: the gateway gives them other names. */
const RENAMED = `
  scalar _Any
  type _Service { sdl: String }
  union _Entity = Subscription | Mutation
  type PageInfo { a: Int }
  type Mutation { query: QueryRoot! }
  type Subscription { name: String! }
  extend type QueryRoot {
    any(in: _Any): Json service: _Service entity: _Entity pageInfo: PageInfo events: [Subscription!]!
  }`;

/** @returns the schema, whose own names the gateway keeps, and the numbers of each call of `add` or `put` */
export function forwardedService() {
  const added: number[] = [];
  const of = { operation, seen };
  return { schema: schemaOf(SDL + FORWARDED, { QueryRoot: of, Changes: of }, added), added };
}

/** A service some of whose types the gateway renames. */
export function renamedSchema() {
  return schemaOf(SDL + RENAMED, {
    QueryRoot: {
      service: () => ({ sdl: 'of its own' }),
      entity: () => ({ __typename: 'Subscription', name: 'hired' }),
      pageInfo: () => ({ a: 1 }),
      events: () => [{ name: 'hired' }],
    },
    Mutation: { query: () => ({}) },
  });
}

function schemaOf(
  sdl: string,
  more: Readonly<Record<string, Record<string, Resolver>>>,
  added: number[] = [],
) {
  const add = (_: unknown, { n }: { n: number }) => {
    added.push(n);
    return n * 2;
  };
  const schema = makeExecutableSchema(sdl, {
    ...more,
    QueryRoot: {
      asUser: (_: unknown, { id }: { id: number }) => ({ id }),
      users: ({ id = 0 }: { id?: number }) => [{ id: id * 10 + 1 }, { id: id * 10 + 2 }],
      name: ({ id }: { id?: number }) => `User ${id ?? 'nobody'}`,
      door: changes,
      either: changes,
      persons: personPages(['1', '2']),
      ...more['QueryRoot'],
    },
    Changes: {
      self: changes,
      add,
      put: (_: unknown, args: { n: number }) => ({ sum: add(undefined, args) }),
      ...more['Changes'],
    },
    Payload: { self: changes, query: () => ({}) },
  });
  for (const field of Object.values(schema.getQueryType()!.getFields()))
    field.resolve ??= (_, args) => args as unknown;
  return schema;
}

function changes() {
  return { __typename: 'Changes' };
}

function operation(...[, , , info]: Parameters<Resolver>) {
  return info.operation.name?.value ?? 'none';
}

/** The custom directives that reached the service, without those of an operation that was not selected. */
function seen(...[, , , info]: Parameters<Resolver>) {
  const directives = new Set<string>();
  const fragments = Object.values(info.fragments).filter(
    ({ name }) => !name.value.startsWith('Fz'),
  );
  for (const node of [info.operation, ...fragments]) {
    visit(node, {
      Directive: (directive) => {
        const isCondition = ['skip', 'include'].includes(directive.name.value);
        if (!isCondition) directives.add(print(directive));
      },
    });
  }
  return [...directives].toSorted().join(' ');
}
