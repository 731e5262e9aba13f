import { makeExecutableSchema, pageOf, type PageArgs } from '../../support/imitations/honest.ts';
import { entryFor } from '../../support/gateway/api-key.ts';

export const peopleSdl = /* GraphQL */ `
  type Query {
    people(first: Int, after: String, email: String): PersonPage!
    teams(first: Int, after: String): TeamPage!
    team(id: ID!): Team
    named: [Named!]!
    anything: [Anything!]!
    paid: [Paid!]!
    me: Person
    salaries(first: Int, after: String): SalaryPage
    secrets(first: Int, after: String): NotePage
  }
  type Mutation {
    rename(id: ID!, name: String!): Person
    mail(email: String!): Boolean
    raise(id: ID!): Salary
  }
  interface Named {
    name: String
    nick: String
  }
  union Anything = Person | Team
  union Paid = Person | Salary
  type Person implements Named {
    id: ID!
    name: String
    nick: String
    email: String
    phone: String!
    contacts: Contacts
    boss: Person
    salary: Salary
  }
  type Contacts {
    address: String
    city: String!
  }
  type Team implements Named {
    id: ID!
    name: String
    nick: String
    lead: Person
    members(first: Int, after: String, email: String): PersonPage!
  }
  type Salary {
    id: ID!
    amount: String
  }
  type Note {
    id: ID!
    text: String
  }
  type PersonPage {
    items: [Person!]!
    pageInfo: PageInfo!
  }
  type TeamPage {
    items: [Team!]!
    pageInfo: PageInfo!
  }
  type SalaryPage {
    items: [Salary!]!
    pageInfo: PageInfo!
  }
  type NotePage {
    items: [Note!]!
    pageInfo: PageInfo!
  }
  type PageInfo {
    hasNextPage: Boolean!
    endCursor: String
  }
`;

export const scopes = {
  fields: {
    'Person.email': { scope: 'pii' },
    'Person.phone': { scope: 'pii' },
    'Person.contacts': { scope: 'pii' },
    'Person.nick': { scope: 'pii' },
    'Mutation.mail': { scope: 'pii' },
  },
  types: { Salary: { scope: 'pay' } },
};

/** A list itself needs a scope, and so does everything that is read through it. The keys need the other scope to exist. */
export const scopesOfList = {
  fields: { 'Query.secrets': { scope: 'pii' }, 'Team.nick': { scope: 'pay' } },
};

/** In every value that needs a scope, and nowhere else. */
export const SECRET = 'SECRET';

const person = (id: number): object => ({
  __typename: 'Person',
  id: `p${id}`,
  name: `Ada ${id}`,
  nick: `${SECRET} nick ${id}`,
  email: `${SECRET} mail ${id}`,
  phone: `${SECRET} phone ${id}`,
  contacts: { address: `${SECRET} street ${id}`, city: `${SECRET} city ${id}` },
  boss: () => (id > 1 ? person(1) : null),
  salary: { id: `${SECRET}-s${id}`, amount: `${SECRET} ${id}` },
});
const people = Array.from({ length: 60 }, (_, index) => person(index + 1));
const team = (id: number): object => ({
  __typename: 'Team',
  id: `t${id}`,
  name: `Team ${id}`,
  nick: `T${id}`,
  lead: person(id),
  members: (args: PageArgs) => pageOf(people.slice(0, 5), args),
});
const teams = [team(1), team(2)];
const salary = { __typename: 'Salary', id: `${SECRET}-s1`, amount: `${SECRET} 1` };

interface Mutations {
  renamed: number;
  mailed: number;
  raised: number;
}

/** A service with personal data, and how often its mutations were executed. */
export function peopleService() {
  const mutations: Mutations = { renamed: 0, mailed: 0, raised: 0 };
  const schema = makeExecutableSchema(peopleSdl, {
    Query: {
      people: (_: unknown, { email, ...args }: PageArgs & { email?: string }) => {
        const matching = people.filter((each) => email === undefined || emailOf(each) === email);
        return pageOf(matching, args);
      },
      teams: (_: unknown, args: PageArgs) => pageOf(teams, args),
      team: (_: unknown, { id }: { id: string }) => team(Number(id.slice(1))),
      named: () => [person(1), team(1)],
      anything: () => [person(1), team(1)],
      paid: () => [person(1), salary],
      me: () => person(1),
      salaries: (_: unknown, args: PageArgs) => pageOf([salary], args),
      secrets: (_: unknown, args: PageArgs) => pageOf([{ id: 'n1', text: `${SECRET} 1` }], args),
    },
    Mutation: {
      rename: () => {
        mutations.renamed += 1;
        return person(1);
      },
      mail: () => {
        mutations.mailed += 1;
        return true;
      },
      raise: () => {
        mutations.raised += 1;
        return salary;
      },
    },
  });
  return { schema, mutations };
}

function emailOf(each: object): unknown {
  return (each as { email: unknown }).email;
}

/** Callers with all scopes, with those of operations only, and with one of the two scopes of fields. */
export const keys = {
  apiKeys: [
    entryFor('all', 'all', 'read', 'drain', 'write', 'router', 'pii', 'pay'),
    entryFor('few', 'few', 'read', 'drain', 'write', 'router'),
    entryFor('pii', 'pii', 'read', 'drain', 'write', 'router', 'pii'),
  ],
  jwt: undefined,
};

export function as(key: 'all' | 'few' | 'pii') {
  return { headers: { 'x-api-key': key } };
}
