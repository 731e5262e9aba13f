import {
  delegateToSchema,
  type MergedTypeConfig,
  type SubschemaConfig,
} from '@graphql-tools/delegate';
import { GraphQLError, GraphQLScalarType, type GraphQLSchema } from 'graphql';
import type { Additions } from '../../src/additions/additions.ts';
import { failure, makeExecutableSchema, pageOf } from '../service/lists.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';

type Fields = Readonly<Record<string, unknown>>;

export const PEOPLE = `
  "All people."
  schema { query: Query mutation: Mutation }
  directive @tag(name: String!) on FIELD
  scalar Long
  enum Stage { NEW HIRED }
  interface Named { name: String! nick: String }
  "One of the people."
  type Person implements Named {
    id: ID! name: String! nick: String email: String stage: Stage! salary: Long rate: Float extra: Long
    boss: Person skills: [String!] robot: Robot
  }
  type Robot implements Named { id: ID! name: String! nick: String maker: String }
  type Note { id: ID! text: String }
  union Found = Person | Robot
  type PersonPage { items: [Person!]! pageInfo: PageInfo! total: Int! }
  type RobotPage { items: [Robot!]! pageInfo: PageInfo! }
  type NotePage { items: [Note!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type Query {
    persons(first: Int, after: String): PersonPage!
    robots(first: Int, after: String): RobotPage!
    notes(first: Int, after: String): NotePage!
    me: Person
    found: [Found!]!
    named: [Named!]!
    "The first has no name."
    odd: [Person]
    shop(of: String): String
  }
  type Mutation { promote(id: ID!): Person mail(to: String!): Boolean }
`;

export const rawJson = (JSON as unknown as { rawJSON: (text: string) => unknown }).rawJSON;
export const LONG = '12345678901234567890';

const ROBOT = { __typename: 'Robot', id: 'r', name: 'Robot', nick: 'R', maker: 'Ours' };

/** The person of this number. The third has no email. */
function person(id: string): Fields {
  return {
    __typename: 'Person',
    id,
    name: () => {
      if (id === 'odd') throw failure('No name.', { code: 'NAMELESS' });
      return `Name ${id}`;
    },
    nick: `N${id}`,
    email: () => {
      if (id === '3') throw failure('No email.', { code: 'NO_EMAIL' });
      return `${id}@example.com`;
    },
    stage: 'HIRED',
    salary: rawJson(LONG),
    extra: { deep: [rawJson('9007199254740993')], name: 'x' },
    boss: () => person(`${id}b`),
    skills: ['a'],
    robot: ROBOT,
  };
}

const listed = (all: readonly unknown[]) => (_: unknown, args: object) => pageOf(all, args);

/** A service with three people. */
function peopleService(): GraphQLSchema {
  return makeExecutableSchema(PEOPLE, {
    Query: {
      persons: listed(['1', '2', '3'].map(person)),
      robots: listed([ROBOT]),
      notes: listed([{ id: 'n', text: 'Note' }]),
      me: () => person('1'),
      found: () => [person('1'), ROBOT],
      named: () => [ROBOT, person('2')],
      odd: () => [person('odd'), person('2')],
      shop: (_: unknown, { of = 'all' }: { of?: string }) => `Shop of ${of}`,
    },
    Mutation: {
      promote: (_: unknown, { id }: { id: string }) => person(id),
      mail: () => true,
    },
  });
}

/** A field that requires one field, and what it says of it. */
export const requiring = (
  field: string,
  say: (value: string) => unknown = (value) => value,
  selectionSet: unknown = `{ ${field} }`,
) => ({ selectionSet, resolve: (parent: Fields) => say(String(parent[field])) }) as never;
const length = requiring('name', (name) => name.length);
/** What a resolver got. */
const seen = {
  selectionSet: '{ __typename id name }',
  resolve: ({ id, name }: Fields) => `${String(id)} ${String(name)}`,
};
const fail = (error: Error) => () => {
  throw error;
};

type Stitched = { schema: { extensions: { stitchingInfo: { subschemaMap: Map<object, never> } } } };

/** Delegates to the served schema. @param more options of `delegateToSchema` */
export const delegated =
  (fieldName: string, more: object = {}) =>
  (_: unknown, __: unknown, context: object, info: Stitched) => {
    const [schema] = info.schema.extensions.stitchingInfo.subschemaMap.keys();
    const options = { schema, operation: 'query', fieldName, context, info, ...more };
    return delegateToSchema(options as never) as Promise<unknown>;
  };

/** What a company adds to the people. @param prefix of their types and root fields, as callers see them */
function peopleAdditions(prefix = ''): Additions {
  return {
    typeDefs: `
      directive @traced on QUERY | INLINE_FRAGMENT | FRAGMENT_DEFINITION
      extend interface ${prefix}Named { length: Int! }
      extend type ${prefix}Person {
        shout: String! fixed: String! seen: String! length: Int! pay: String contact: String
        renamed: String
        strict: String! late: String told: String
      }
      extend type ${prefix}Robot { shout: String! seen: String! length: Int! }
      interface Labelled { label: String! caps: String }
      type Badge implements Labelled { label: String! caps: String of: ${prefix}Person all: [${prefix}Person!] }
      scalar Loud
      type Numbers { many(n: Int!): [Numbers!]! }
      extend type Query {
        top: [${prefix}Person] best: [${prefix}Person!]! anyone: ${prefix}Named badges: [Badge!]!
        loud: Loud labelled: Labelled own(big: ${prefix}Long): String! brokenRoot: String! numbers: Numbers!
      }
      extend type Mutation { praise(id: ID!): ${prefix}Person }
    `,
    resolvers: {
      [`${prefix}Person`]: {
        shout: requiring('name', (name) => `${name}!`),
        fixed: () => 'fixed',
        seen,
        length,
        pay: requiring('salary'),
        contact: requiring('email'),
        renamed: {
          selectionSet: `{ type: __typename boss { id } ... on ${prefix}Person { mail: email } }`,
          resolve: ({ type, boss, mail }: Fields) =>
            [type, (boss as Fields)['id'], mail].map(String).join(),
        },
        strict: fail(new TypeError('secret')),
        late: () => Promise.reject(new TypeError('secret')),
        told: fail(new GraphQLError('Ask the owner.', { extensions: { code: 'OWN' } })),
      },
      [`${prefix}Robot`]: { shout: requiring('maker', (maker) => `${maker}!`), seen, length },
      Loud: new GraphQLScalarType({ name: 'Loud', serialize: (value) => `${String(value)}!` }),
      Labelled: { __resolveType: () => 'Badge' },
      Badge: { caps: ({ label }: Fields) => String(label).toUpperCase() },
      Query: {
        top: { resolve: () => [{ id: '2' }, null, Promise.resolve({ id: '1' })] },
        best: () => Promise.resolve(['1', '2', '3'].map((id) => ({ id }))),
        anyone: () => ({ __typename: `${prefix}Person`, id: '3' }),
        loud: () => 'loud',
        labelled: () => ({ label: 'L' }),
        own: () => 'own',
        badges: () => [
          { label: 'First', of: { id: '1' }, all: () => [{ id: '2' }] },
          { label: 'None', of: null },
        ],
        brokenRoot: fail(new Error('secret')),
        numbers: () => numbers,
      },
      Mutation: { praise: (_: unknown, { id }: Fields) => ({ id }) },
    },
  };
}

const numbers = {
  many: ({ n }: { n: number }) => Array.from({ length: n }, () => numbers),
};

/** A gateway over the people, with what a company adds to them. @param more of it, beside the rest */
export function startPeople(more: Additions = {}, options: TestGatewayOptions = {}) {
  const { typeDefs = [], resolvers = [], subschemas = [] } = more;
  const people = peopleAdditions(options.config?.schemaPrefix);
  const additions = {
    typeDefs: [[people.typeDefs!], [typeDefs]],
    resolvers: [people.resolvers!, resolvers].flat(),
    subschemas,
  };
  return startGatewayOverService(
    { schema: peopleService() },
    { snapshot: PEOPLE, additions, ...options, config: { mutations: 'all', ...options.config } },
  );
}

/** A second service, which knows the keys of people, and says them in `field`. */
interface SecondService extends SubschemaConfig {
  /** The keys of each request. */
  readonly requests: Fields[][];
}

/** How a second service finds many people, by a field of theirs. */
export function byKeys(field: string, name = 'id'): MergedTypeConfig {
  return {
    selectionSet: `{ ${name} }`,
    fieldName: `${field}ByKeys`,
    key: (record: Fields) => ({ [name]: record[name] }),
    argsFromKeys: (keys) => ({ keys }),
  };
}

/** @param merge how people are found in it; `more` are its other fields, which say what they are of */
export function secondService(
  field: string,
  merge: MergedTypeConfig = byKeys(field),
  { of = 'Person', idType = 'ID', more = '' } = {},
): SecondService {
  const requests: Fields[][] = [];
  const known = (key: Fields) => {
    const said = ['email', 'room', field].map((name) => [
      name,
      `${name} of ${Object.values(key).join()}`,
    ]);
    return { ...key, ...Object.fromEntries(said) };
  };
  const sdl = `
    type Query {
      ${field}ByKeys(keys: [${field}Key!]!): [${of}]!
      ${field}By(id: ${idType}!): ${of}
      ${field}Known: [${of}!]!
    }
    input ${field}Key { id: ${idType} name: String }
    "Somebody." type ${of} { id: ${idType}! ${field}: String ${more} }
  `;
  const schema = makeExecutableSchema(sdl, {
    Query: {
      [`${field}ByKeys`]: (_: unknown, { keys }: { keys: Fields[] }) => {
        requests.push(keys);
        return keys.map(known);
      },
      [`${field}By`]: (_: unknown, key: Fields) => known(key),
      [`${field}Known`]: () => [{ id: '2' }, { id: '1' }].map(known),
    },
  });
  return { requests, schema, merge: { [of]: merge } };
}
