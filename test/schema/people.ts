import { buildSchema, execute, parse, type OperationDefinitionNode } from 'graphql';
import { delegateToSchema } from '@graphql-tools/delegate';
import type { ExecutionRequest } from '@graphql-tools/utils';
import type { Additions } from '../../src/additions/additions.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { makeExecutableSchema, type PageArgs, pageOf } from '../service/lists.ts';

/** A service with personal data. */
export const peopleSdl = `
  type Query {
    people(first: Int, after: String): PersonPage!
    team(id: ID!): Team
    named: [Named!]!
    paid: [Paid!]!
    me: Person
    salaries(first: Int, after: String): SalaryPage
    secrets(first: Int, after: String): NotePage
  }
  type Mutation { rename(id: ID!, name: String!): Person mail(email: String!): Boolean }
  interface Named { name: String nick: String }
  union Paid = Person | Salary
  type Person implements Named {
    id: ID! name: String nick: String email: String phone: String! contacts: Contacts salary: Salary
  }
  type Contacts { city: String! }
  type Team implements Named {
    id: ID! name: String nick: String members(first: Int, after: String): PersonPage!
  }
  type Salary { id: ID! amount: String }
  type Note { id: ID! text: String }
  type PersonPage { items: [Person!]! pageInfo: PageInfo! total: Int! }
  type SalaryPage { items: [Salary!]! pageInfo: PageInfo! }
  type NotePage { items: [Note!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
`;

/** Of the service alone. */
export const scopes = {
  fields: {
    'Person.email': { scope: 'pii' },
    'Person.phone': { scope: 'pii' },
    'Person.contacts': { scope: 'pii' },
    'Person.nick': { scope: 'pii' },
    'Mutation.mail': { scope: 'pii' },
    'Query.secrets': { scope: 'pii' },
  },
  types: { Salary: { scope: 'pay' } },
};

/** Those of the service, and of `additions`. */
export const allScopes = {
  fields: {
    ...scopes.fields,
    'Person.badge': { scope: 'pii' },
    'Person.room': { scope: 'pay' },
    'Query.payday': { scope: 'pay' },
  },
  types: { ...scopes.types, Entry: { scope: 'pay' } },
};

/** In every value that needs a scope, and nowhere else. */
export const SECRET = 'SECRET';

const person = (id: number) => ({
  __typename: 'Person',
  id: `p${id}`,
  name: `Ada ${id}`,
  nick: `${SECRET} nick ${id}`,
  email: `${SECRET} mail ${id}`,
  phone: `${SECRET} phone ${id}`,
  contacts: { city: `${SECRET} city ${id}` },
  salary: { id: `${SECRET}-s${id}`, amount: `${SECRET} ${id}` },
});
const people = Array.from({ length: 60 }, (_, index) => person(index + 1));
const team = {
  __typename: 'Team',
  id: 't1',
  name: 'Team',
  nick: 'T1',
  members: (args: PageArgs) => pageOf(people.slice(0, 5), args),
};
const salary = { __typename: 'Salary', id: `${SECRET}-s1`, amount: `${SECRET} 1` };

/** The service, and how often its mutations were executed. */
export function peopleService() {
  const mutations = { count: 0 };
  const mutate =
    <T>(result: T) =>
    () => {
      mutations.count += 1;
      return result;
    };
  const schema = makeExecutableSchema(peopleSdl, {
    Query: {
      people: (_: unknown, args: PageArgs) => pageOf(people, args),
      team: () => team,
      named: () => [person(1), team],
      paid: () => [person(1), salary],
      me: () => person(1),
      salaries: (_: unknown, args: PageArgs) => pageOf([salary], args),
      secrets: (_: unknown, args: PageArgs) => pageOf([{ id: 'n1', text: `${SECRET} 1` }], args),
    },
    Mutation: { rename: mutate(person(1)), mail: mutate(true) },
  });
  return { schema, mutations };
}

const listed = (id: string) => ({
  __typename: 'Person',
  id,
  email: `${SECRET} directory ${id}`,
  room: `${SECRET} room of ${id}`,
  rank: `${SECRET} rank of ${id}`,
});

/** Another service, which has the same personal data of the same persons. */
function directory(): NonNullable<Additions['subschemas']>[number] {
  const schema = buildSchema(`
    type Query { personsById(ids: [ID!]!): [Person]! entries: [Entry!]! }
    type Entry { id: ID! person: Person named: HasMail }
    interface HasMail { email: String }
    type Person implements HasMail { id: ID! email: String room: String rank: String }
  `);
  const rootValue = {
    personsById: ({ ids }: { ids: string[] }) => ids.map(listed),
    entries: () => [{ id: `${SECRET} e1`, person: listed('p1'), named: listed('p1') }],
  };
  return {
    schema,
    executor: ({ document, variables }: ExecutionRequest) =>
      execute({ schema, document, rootValue, variableValues: variables as never }) as never,
    merge: {
      Person: {
        selectionSet: '{ id }',
        fields: { rank: { selectionSet: '{ email }', computed: true } },
        fieldName: 'personsById',
        key: ({ id }: { id: string }) => id,
        argsFromKeys: (ids: readonly string[]) => ({ ids }),
      },
    },
  };
}

/** A field that requires another one. */
const requiring = (field: string, words: string) => ({
  selectionSet: `{ ${field} }`,
  resolve: (parent: Record<string, unknown>) => `${words} ${String(parent[field])}`,
});

/** What a company adds: fields that require personal data, and others. */
export const additions: Additions = {
  typeDefs: `
    extend type Query { payday: String boss: Person mailOf(id: ID!): String }
    extend interface Named { label: String }
    extend type Team { label: String }
    extend type Person {
      label: String farewell: String greeting: String loud: String! dynamic: String badge: String initials: String
    }
  `,
  resolvers: {
    Query: {
      payday: () => `${SECRET} payday`,
      boss: () => person(1),
      mailOf: async (_parent, args: { id: string }, context, info) => {
        const record = (await delegateToSchema({
          schema: servedIn(info),
          operation: 'query' as never,
          fieldName: 'person',
          args,
          context,
          info,
          selectionSet: selectionSetOf('{ id email }'),
          skipTypeMerging: true,
          returnType: info.schema.getType('Person') as never,
        })) as { email?: string } | null;
        if (record instanceof Error) throw record;
        return record?.email ?? null;
      },
    },
    Named: { label: requiring('nick', 'label') },
    Person: {
      farewell: requiring('rank', 'Good-bye,'),
      greeting: requiring('email', 'Dear'),
      loud: requiring('phone', 'loud'),
      dynamic: {
        selectionSet: () => selectionSetOf('{ email }'),
        resolve: ({ email }: { email?: string }) => email,
      },
      badge: requiring('id', `${SECRET} badge`),
      initials: { selectionSet: '{ name }', resolve: ({ name }: { name: string }) => name[0] },
    },
  },
  subschemas: [directory()],
};

function servedIn(info: { schema: { extensions: unknown } }) {
  const { stitchingInfo } = info.schema.extensions as {
    stitchingInfo: { subschemaMap: Map<object, never> };
  };
  return [...stitchingInfo.subschemaMap.keys()][0] as never;
}

function selectionSetOf(text: string) {
  const [definition] = parse(text).definitions;
  return (definition as OperationDefinitionNode).selectionSet;
}

const OF_OPERATIONS = ['read', 'drain', 'write', 'router'];

/** Callers with both scopes of fields, without one of them, and without both. */
export const keys = {
  apiKeys: [
    entryFor('all', 'all', ...OF_OPERATIONS, 'pii', 'pay'),
    entryFor('no-pii', 'no-pii', ...OF_OPERATIONS, 'pay'),
    entryFor('no-pay', 'no-pay', ...OF_OPERATIONS, 'pii'),
    entryFor('few', 'few', ...OF_OPERATIONS),
  ],
  jwt: undefined,
};

export function as(key: 'all' | 'no-pii' | 'no-pay' | 'few') {
  return { headers: { 'x-api-key': key } };
}
