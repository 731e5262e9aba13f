import type { MergedTypeConfig, SubschemaConfig } from '@graphql-tools/delegate';
import { forwardArgsToSelectionSet } from '@graphql-tools/stitch';
import { parseSelectionSet, type ExecutionRequest } from '@graphql-tools/utils';
import { buildSchema, execute, GraphQLError, type GraphQLSchema } from 'graphql';
import type { Additions } from '../../src/additions/additions.ts';
import { failure, makeExecutableSchema, pageOf } from '../service/lists.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';

type Fields = Readonly<Record<string, unknown>>;

const PEOPLE = `
  directive @tag(name: String!) on
    FIELD | FRAGMENT_SPREAD | INLINE_FRAGMENT | FRAGMENT_DEFINITION | VARIABLE_DEFINITION
  directive @inContext(country: String) on QUERY | MUTATION
  scalar Long
  enum Stage { NEW HIRED }
  interface Named { name: String! }
  type Person implements Named {
    id: ID! name: String! email: String stage: Stage! salary: Long extra: Long boss: Person skills: [String!]
  }
  type Robot implements Named { id: ID! name: String! maker: String }
  union Found = Person | Robot
  type PersonPage { items: [Person!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type Query {
    persons(first: Int, after: String): PersonPage!
    found: [Found!]!
    named: [Named!]!
    "The first has no name."
    odd: [Person]
    shop(of: String): String
  }
  type Mutation { promote(id: ID!): Person }
`;

const { rawJSON: rawJson } = JSON as JSON & { rawJSON: (text: string) => unknown };
export const LONG = '12345678901234567890';

/** The person of this number. The third has no email. */
function person(id: string): Fields {
  return {
    __typename: 'Person',
    id,
    name: () => {
      if (id === 'odd') throw failure('No name.', { code: 'NAMELESS' });
      return `Name ${id}`;
    },
    email: () => {
      if (id === '3') throw failure('No email.', { code: 'NO_EMAIL' });
      return `${id}@example.com`;
    },
    stage: 'HIRED',
    salary: rawJson(LONG),
    extra: { deep: [rawJson('9007199254740993')], name: 'x' },
    boss: () => person(`${id}b`),
    skills: ['a'],
  };
}

const ROBOT = { __typename: 'Robot', id: 'r', name: 'Robot', maker: 'Ours' };

/** A service with three people. */
function peopleService(): GraphQLSchema {
  const people = ['1', '2', '3'].map(person);
  return makeExecutableSchema(PEOPLE, {
    Query: {
      persons: (_: unknown, args: object) => pageOf(people, args),
      found: () => [person('1'), ROBOT],
      named: () => [ROBOT, person('2')],
      odd: () => [person('odd'), person('2')],
      shop: (_: unknown, { of = 'all' }: { of?: string }) => `Shop of ${of}`,
    },
    Mutation: { promote: (_: unknown, { id }: { id: string }) => person(id) },
  });
}

/** What a resolver got. */
const seen = ({ id, name }: Fields) => `${String(id)} ${String(name)}`;
const shout = ({ name }: Fields) => `${String(name)}!`;
const fail = (error: Error) => () => {
  throw error;
};

/** What a company adds to the people. @param prefix of their types and root fields, as callers see them */
function peopleAdditions(prefix = ''): Additions {
  return {
    typeDefs: `
      directive @traced on QUERY | INLINE_FRAGMENT | FRAGMENT_DEFINITION
      extend interface ${prefix}Named { length: Int! }
      extend type ${prefix}Person {
        shout: String! fixed: String! seen: String! length: Int! pay: String contact: String
        renamed: String byFunction: Int forwarded(x: Int): String
        strict: String! late: String told: String
      }
      extend type ${prefix}Robot { shout: String! seen: String! length: Int! }
      type Badge { label: String! of: ${prefix}Person all: [${prefix}Person!] }
      type Numbers { many(n: Int!): [Numbers!]! drawn(n: Int!): [Int!]! }
      extend type Query {
        top: [${prefix}Person] best: [${prefix}Person!]! anyone: ${prefix}Named visitor: ${prefix}Person badges: [Badge!]!
        own(big: ${prefix}Long): String! brokenRoot: String! numbers: Numbers!
      }
      extend type Mutation { praise(id: ID!): ${prefix}Person }
    `,
    resolvers: {
      [`${prefix}Named`]: {
        length: { selectionSet: '{ name }', resolve: ({ name }: Fields) => String(name).length },
      },
      [`${prefix}Person`]: {
        shout: { selectionSet: '{ name }', resolve: shout },
        fixed: () => 'fixed',
        seen: { selectionSet: '{ id name }', resolve: seen },
        pay: { selectionSet: '{ salary }', resolve: ({ salary }: Fields) => String(salary) },
        contact: { selectionSet: '{ email }', resolve: ({ email }: Fields) => String(email) },
        renamed: {
          selectionSet: `{ type: __typename boss { id } ... on ${prefix}Person { mail: email } }`,
          resolve: ({ type, boss, mail }: Fields) =>
            [type, (boss as Fields)['id'], mail].map(String).join(),
        },
        byFunction: {
          selectionSet: () => parseSelectionSet('{ id }'),
          resolve: ({ id }: Fields) => Number(id),
        },
        forwarded: {
          selectionSet: forwardArgsToSelectionSet('{ name }', { name: [] }),
          resolve: ({ name }: Fields) => name,
        } as never,
        strict: fail(new TypeError('secret')),
        late: () => Promise.reject(new TypeError('secret')),
        told: fail(new GraphQLError('Ask the owner.', { extensions: { code: 'OWN' } })),
      },
      [`${prefix}Robot`]: {
        shout: { selectionSet: '{ maker }', resolve: ({ maker }: Fields) => `${String(maker)}!` },
        seen: { selectionSet: '{ id name }', resolve: seen },
      },
      Query: {
        top: () => [{ id: '2' }, null, Promise.resolve({ id: '1' })],
        best: () => Promise.resolve(['1', '2', '3'].map((id) => ({ id }))),
        anyone: () => ({ __typename: `${prefix}Person`, id: '3' }),
        visitor: () => ({ name: 'Ada' }),
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
  *drawn({ n }: { n: number }) {
    for (let number = 0; number < n; number += 1) yield number;
  },
};

/** A gateway over the people, with what a company adds to them. @param more of it, beside the rest */
export function startPeople(more: Additions = {}, options: TestGatewayOptions = {}) {
  const { typeDefs = [], resolvers = [], subschemas = [] } = more;
  const people = peopleAdditions(options.config?.schemaPrefix);
  const additions = {
    typeDefs: [people.typeDefs!, typeDefs].flat(),
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

/** How a second service finds many people, by their ids. */
export function byKeys(field: string): MergedTypeConfig {
  return {
    selectionSet: '{ id }',
    fieldName: `${field}ByKeys`,
    key: ({ id }: Fields) => ({ id }),
    argsFromKeys: (keys) => ({ keys }),
  };
}

/** @param merge how people are found in it */
export function secondService(
  field: string,
  merge: MergedTypeConfig = byKeys(field),
  { of = 'Person', idType = 'ID' } = {},
): SecondService {
  const type = of === 'Named' ? 'Person' : of;
  const schema = buildSchema(`
    type Query {
      ${field}ByKeys(keys: [${field}Key!]!): [${type}]!
      ${field}By(id: ${idType}!): ${type}
      ${field}Known: [${type}!]!
    }
    input ${field}Key { id: ${idType} name: String }
    ${
      of === 'Named'
        ? `interface Named { name: String! } type Person implements Named { name: String! ${field}: String }`
        : `type ${type} { id: ${idType}! ${field}: String }`
    }
  `);
  const requests: Fields[][] = [];
  const known = (key: Fields) => ({ ...key, [field]: `${field} of ${Object.values(key).join()}` });
  const rootValue = {
    [`${field}ByKeys`]: ({ keys }: { keys: Fields[] }) => {
      requests.push(keys);
      return keys.map(known);
    },
    [`${field}By`]: known,
    [`${field}Known`]: () => [{ id: '2' }, { id: '1' }].map(known),
  };
  return {
    requests,
    schema,
    executor: (({ document, variables }: ExecutionRequest) =>
      execute({ schema, document, rootValue, variableValues: variables })) as never,
    merge: { [of]: merge },
  };
}
