import { execute, parse, validate } from 'graphql';
import { describe, expect, test } from 'vitest';
import { encodeGlobalId } from '../../src/answers/global-id.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { makeExecutableSchema, pageOf, type PageArgs } from '../support/imitations/honest.ts';
import { ACCEPTED, joinedAnswer } from '../support/clients/multipart.ts';
import { someOf } from '../support/random/some-of.ts';
import { serviceOf, type ReceivedOperation, type Service } from './service.ts';

/*
 * A variable with a default may be null where `@skip`, `@include`, `@defer` and `@stream` need true or false. graphql-js
 * reports an error at the object whose fields it collects. Callers get the same error,
 * whether the service or the gateway answers the field.
 */

const COMMON = `
  interface Named { name: String }
  type Pet implements Named { name: String }
  type Mutation { rename(id: ID!): Person }`;

const SERVICE = `${COMMON}
  type Person implements Named {
    id: ID! name: String boss: Person friends: [Person!] pet: Named
    pets(first: Int, after: String): PetPage!
  }
  type PetPage { items: [Pet]! pageInfo: PageInfo! }
  type Candidate { id: ID! name: String }
  type PersonPage { items: [Person]! pageInfo: PageInfo! }
  type CandidatePage { items: [Candidate!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type Query {
    me: Person you: Person! nobody: Person named: Named tags: [String]
    person(id: ID!): Person
    persons(first: Int, after: String): PersonPage!
    candidates(first: Int, after: String): CandidatePage!
    none(first: Int, after: String): PersonPage!
  }`;

/** What the gateway serves, as far as operations here use it. */
const SERVED = `${COMMON}
  scalar _Any
  interface Node { id: ID! }
  type Person implements Named & Node {
    id: ID! recordId: ID! name: String boss: Person friends: [Person!] pet: Named
    allPets(limit: Int): [Pet]
    petsConnection(first: Int): PetConnection
  }
  type PetConnection { edges: [PetEdge!]! nodes: [Pet]! pageInfo: PageInfo! totalCount: Int }
  type PetEdge { node: Pet }
  type Candidate implements Node { id: ID! recordId: ID! name: String }
  union _Entity = Person | Candidate
  type PersonPage { items: [Person]! pageInfo: UpstreamPageInfo! }
  type UpstreamPageInfo { hasNextPage: Boolean! endCursor: String }
  type PageInfo { hasNextPage: Boolean! hasPreviousPage: Boolean! }
  type PersonEdge { node: Person }
  type PersonConnection { edges: [PersonEdge!]! nodes: [Person]! pageInfo: PageInfo! totalCount: Int }
  type Query {
    me: Person you: Person! nobody: Person named: Named tags: [String]
    person(id: ID!): Person
    candidate(id: ID!): Candidate
    persons(first: Int, after: String): PersonPage!
    allPersons(limit: Int): [Person]
    allNone: [Person]
    personsConnection(first: Int): PersonConnection
    noneConnection(first: Int): PersonConnection
    node(id: ID!): Node
    nodes(ids: [ID!]!): [Node]!
    _entities(representations: [_Any!]!): [_Entity]!
  }`;

interface Person {
  readonly __typename: string;
  readonly id: string;
  readonly name: string;
}

const NAMES = ['Ada', 'Bob', 'Cyd'];
const of = (__typename: string) =>
  NAMES.map((name, at): Person => ({ __typename, id: String(at + 1), name }));
const [people, candidates] = [of('Person'), of('Candidate')];
const [me, you] = people as [Person, Person];
const byId =
  (all: readonly Person[]) =>
  (_: unknown, { id }: { id: string }) =>
    all.find((record) => record.id === id) ?? null;
const ofPerson = {
  boss: () => you,
  friends: () => people,
  pet: () => ({ __typename: 'Pet', name: 'Rex' }),
};
const shared = {
  me: () => me,
  you: () => you,
  nobody: () => null,
  named: () => me,
  tags: () => ['a'],
};

const globalId = ({ __typename: type, id }: Person) => encodeGlobalId({ type, id });
const connection = (all: readonly object[]) => () => ({
  edges: all.map((node) => ({ node })),
  nodes: all,
  pageInfo: { hasNextPage: false, hasPreviousPage: false },
  totalCount: all.length,
});
const pets = ['Rex', 'Tom'].map((name) => ({ __typename: 'Pet', name }));
const derivedOfPerson = {
  allPets: (_: unknown, { limit }: { limit?: number }) => pets.slice(0, limit),
  petsConnection: connection(pets),
};
const withGlobalId = { id: globalId, recordId: ({ id }: Person) => id };
const both = [...people, ...candidates];
const servedSchema = makeExecutableSchema(SERVED, {
  Person: { ...ofPerson, ...derivedOfPerson, ...withGlobalId },
  Candidate: withGlobalId,
  Query: {
    ...shared,
    person: byId(people),
    candidate: byId(candidates),
    persons: (_: unknown, args: PageArgs) => pageOf(people, args),
    allPersons: () => people,
    allNone: () => [],
    personsConnection: connection(people),
    noneConnection: connection([]),
    node: (_: unknown, { id }: { id: string }) =>
      both.find((record) => globalId(record) === id) ?? null,
    nodes: (_: unknown, { ids }: { ids: string[] }) =>
      ids.map((id) => both.find((record) => globalId(record) === id) ?? null),
    _entities: (_: unknown, { representations }: { representations: Person[] }) =>
      representations.map(
        ({ __typename, id }) =>
          both.find((record) => record.__typename === __typename && record.id === id) ?? null,
      ),
  },
});

function service() {
  const sent = { renames: 0 };
  const schema = makeExecutableSchema(SERVICE, {
    Person: { ...ofPerson, pets: (_: unknown, args: PageArgs) => pageOf(pets, args) },
    Mutation: {
      rename: () => {
        sent.renames += 1;
        return me;
      },
    },
    Query: {
      ...shared,
      person: byId(people),
      persons: (_: unknown, args: PageArgs) => pageOf(people, args),
      candidates: (_: unknown, args: PageArgs) => pageOf(candidates, args),
      none: (_: unknown, args: PageArgs) => pageOf([], args),
    },
  });
  return { schema, sent };
}

/** A service that takes null for false. */
function lenient(strict: Service): Service {
  return (operation) => {
    const n = operation.variables?.['n'];
    const variables = { ...operation.variables, ...(n === null && { n: false }) };
    return strict({ ...operation, variables });
  };
}

const [ADA, NOBODY] = [globalId(me), encodeGlobalId({ type: 'Person', id: '600' })];
const REFERENCES = `representations: [${['Person', 'Candidate', 'Person']
  .map((type, at) => `{ __typename: "${type}", id: "${at === 2 ? 600 : 1}" }`)
  .join(' ')}]`;

/** `C` stands for the directive, and `OTHER` for the other one, which excludes its field. */
const QUERIES = [
  '{ me C { id } }',
  '{ me { id } allPersons C { id } }',
  '{ ... C { allPersons { id } } me { id } }',
  '{ ...F C tags } fragment F on Query { me { id } }',
  '{ ...F tags } fragment F on Query { ... { tags me C { id } } }',
  '{ __typename C }',
  '{ tags ... @skip(if: true) { me C { id } } }',
  '{ tags OTHER C }',
  '{ tags C OTHER me { id } }',
  '{ tags ...F ...F C } fragment F on Query { me { id } }',
  '{ tags me { id name C } }',
  '{ tags nobody { id name C } }',
  '{ tags you { id name C } }',
  '{ tags me { id ... C { name } } }',
  '{ tags me { ...F C id } } fragment F on Person { name }',
  '{ tags me { ... on Person { name } ... on Named { name C } } }',
  '{ tags named { ... on Pet { name C } ... on Person { id } } }',
  '{ tags named { ... on Pet C { name } } }',
  '{ me { boss { name C } friends { id } } }',
  '{ me { boss { name } friends { id boss { id C } } } }',
  '{ me { name friends { name C } } }',
  '{ persons { items { name C } } tags }',
  '{ persons { items { name } pageInfo { endCursor C } } tags }',
  '{ allPersons { name C } tags }',
  '{ allNone { name C } tags }',
  '{ allPersons { boss { name C } } tags }',
  '{ personsConnection(first: 9) { nodes { name C } } tags }',
  '{ personsConnection(first: 9) { nodes C { name } } tags }',
  '{ personsConnection(first: 9) { edges C { node { name } } } tags }',
  '{ personsConnection(first: 9) { edges { node C { name } } } tags }',
  '{ noneConnection(first: 9) { edges { node C { name } } } tags }',
  '{ personsConnection(first: 9) { edges { node { name C } } } tags }',
  '{ personsConnection(first: 9) { totalCount pageInfo { hasNextPage C } } tags }',
  '{ personsConnection(first: 9) { ... C { totalCount } pageInfo { hasNextPage } } tags }',
  '{ me { allPets { name C } } tags }',
  '{ me { allPets C { name } } tags }',
  '{ me { allPets(limit: 1) { ... C { name } } petsConnection(first: 9) { totalCount } } tags }',
  '{ me { petsConnection(first: 9) { nodes { name C } } } tags }',
  '{ me { petsConnection(first: 9) { edges { node C { name } } } name } tags }',
  '{ me { petsConnection(first: 9) { pageInfo { hasNextPage C } } name } tags }',
  '{ me { petsConnection(first: 9) { totalCount C } name } tags }',
  '{ allPersons { allPets { name C } name } tags }',
  '{ person(id: "1") { id name C } tags }',
  '{ candidate(id: "1") { recordId name C } tags }',
  '{ candidate(id: "1") { recordId ... C { name } } tags }',
  '{ candidate(id: "600") { recordId ... C { name } } tags }',
  `{ node(id: "${ADA}") { id ... on Person { name C } } tags }`,
  `{ node(id: "${ADA}") { id ... on Person C { name } ... on Candidate { name } } tags }`,
  `{ node(id: "${NOBODY}") { id C } tags }`,
  `{ nodes(ids: ["${ADA}", "${NOBODY}"]) { id ... on Person { name C } ... on Candidate { name } } tags }`,
  `{ _entities(${REFERENCES}) { ... on Person { name C } ... on Candidate { name } } tags }`,
  `{ _entities(${REFERENCES}) { ... on Candidate { ... C { name } } } tags }`,
  '{ __type(name: "Person") { name kind C } tags }',
];

describe.each([
  ['a service that refuses it', (strict: Service) => strict, 0],
  ['a service that takes it for false', lenient, 3],
] as const)('null for a condition, with %s', (_service, made, from) => {
  test.each([
    ['@skip(if: $n)', '@include(if: false)', 0],
    ['@include(if: $n)', '@skip(if: true)', 6],
  ])('%s is an error as in graphql-js', async (directive, other, more) => {
    const { schema } = service();
    await using gateway = await startGateway(made(serviceOf({ schema })));
    for (const written of someOf(QUERIES, from + more)) {
      const query = `query ($n: Boolean = true) ${written.replace(/\bC\b/, directive).replace('OTHER', other)}`;
      const document = parse(query);
      expect(validate(servedSchema, document)).toEqual([]);
      for (const n of [null, true, false]) {
        const expected = await execute({ schema: servedSchema, document, variableValues: { n } });
        const context = `${query} ${n}`;
        const { data, errors } = await gateway.ask(query, { n });
        expect(data ?? null, context).toEqual(plain(expected.data));
        expect(comparable(errors), context).toEqual(comparable(expected.errors));
        if (n !== null) continue;
        const inParts = query.replace('{ ', '{ ... @defer { last: __typename } ');
        const request = { query: inParts, variables: { n } };
        const joined = await joinedAnswer(gateway, request, ACCEPTED.at(-1)!);
        const whole = expected.data ? { ...expected.data, last: 'Query' } : null;
        expect(joined.data, context).toEqual(plain(whole));
        expect(comparable(joined.errors), context).toEqual(comparable(expected.errors));
      }
    }
  });

  test('a mutation with such a condition at its root is not executed', async () => {
    const { schema, sent } = service();
    await using gateway = await startGateway(made(serviceOf({ schema })));
    const variables = { n: null };
    const answer = await gateway.ask(
      'mutation ($n: Boolean = true) { rename(id: 1) { id } again: rename(id: 2) @skip(if: $n) { id } }',
      variables,
    );
    expect(answer).toMatchObject({ data: null, errors: [REFUSED] });
    expect(sent.renames).toBe(0);
  });

  test.each([
    ['@defer at the root', '{ tags ... @defer(if: $n) { me { id } } }', null, []],
    [
      '@defer in an object',
      '{ tags me { ... @defer(if: $n) { id } } }',
      { tags: ['a'], me: null },
      ['me'],
    ],
    [
      '@defer in a record of a drain',
      '{ tags allPersons(limit: 1) { ...F @defer(if: $n) } } fragment F on Person { name }',
      { tags: ['a'], allPersons: [null] },
      ['allPersons', 0],
    ],
    [
      '@defer in a connection',
      '{ tags personsConnection(first: 1) { ... @defer(if: $n) { totalCount } nodes { name } } }',
      { tags: ['a'], personsConnection: null },
      ['personsConnection'],
    ],
    [
      '@defer in a record that is looked up',
      '{ tags candidate(id: "1") { name ... @defer(if: $n) { recordId } } }',
      { tags: ['a'], candidate: null },
      ['candidate'],
    ],
    [
      '@stream of a drain',
      '{ tags allPersons @stream(if: $n) { id } }',
      { tags: ['a'], allPersons: null },
      ['allPersons'],
    ],
    [
      '@stream in a connection',
      '{ tags personsConnection(first: 1) { nodes @stream(if: $n) { id } } }',
      { tags: ['a'], personsConnection: null },
      ['personsConnection', 'nodes'],
    ],
    [
      '@stream of a list of the service',
      '{ me { id } tags @stream(if: $n) }',
      { me: { id: ADA }, tags: null },
      ['tags'],
    ],
  ])(
    'null for the condition of %s is an error in every format',
    async (_where, query, data, path) => {
      const { schema } = service();
      await using gateway = await startGateway(made(serviceOf({ schema })));
      const request = { query: `query ($n: Boolean) ${query}`, variables: { n: null } };
      for (const accept of ACCEPTED) {
        const answer = await joinedAnswer(gateway, request, accept);
        expect(answer.data, accept).toEqual(data);
        expect(answer.errors, accept).toMatchObject([{ ...REFUSED, ...(data && { path }) }]);
      }
      const { errors } = await gateway.ask(request.query);
      expect(errors, 'without a value, the condition is true').toBeUndefined();
    },
  );
});

const REFUSED = {
  message: 'Argument "if" of non-null type "Boolean!" must not be null.',
};

async function startGateway(answer: Service) {
  const gateway = await startGatewayOverFake(
    { persons: 0 },
    {
      snapshot: SERVICE,
      overrides: { fields: { 'Person.pets': { identity: ['name'] } } },
      config: { nodeInterface: true, mutations: 'all' },
    },
  );
  gateway.upstream.answer(async (response, { body }) => {
    const text = await answer(JSON.parse(body) as ReceivedOperation);
    response.writeHead(200, { 'content-type': 'application/json' }).end(text);
  });
  return gateway;
}

function plain(data: unknown): unknown {
  return JSON.parse(JSON.stringify(data ?? null));
}

function comparable(
  errors: readonly { message: string; path?: readonly unknown[] | undefined }[] = [],
) {
  const compared = errors.map(({ message, path }) => ({ message, path: path ?? [] }));
  return compared.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}
