import { readFileSync } from 'node:fs';
import { buildSchema, lexicographicSortSchema, printSchema, printType } from 'graphql';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { encodeGlobalId } from '../../../src/answers/global-id.ts';
import { makeExecutableSchema, fullSdl, fullService } from '../../support/imitations/honest.ts';
import { startGatewayOverFake } from '../../support/gateway/over-fake.ts';
import { startFakeUpstream, type FakeUpstream } from '../../support/imitations/scripted.ts';
import {
  startGateway,
  startGatewayOverSandbox,
  type TestGateway,
} from '../../support/gateway/gateway.ts';
import { servedOffline } from '../../support/gateway/served-offline.ts';
import { all, putTogether } from '../../support/clients/multipart.ts';
import { blockWith } from '../../support/docs/documents.ts';
import { runHere } from '../../support/gateway/run-here.ts';

/** A service with Int ids, String ids, both in one union, and a type that no field finds again. */
let upstream: FakeUpstream;
let gateway: TestGateway;
let counted = 0;
beforeAll(async () => {
  upstream = await startFakeUpstream({ schema: fullService().schema });
  const config = { nodeInterface: true, mutations: 'all' as const };
  gateway = await startGateway(upstream, { snapshot: fullSdl, config });
  await gateway.ask('{ viewer { __typename } }');
});
beforeEach(() => {
  counted = upstream.received.length;
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

test('schema print with NODE_INTERFACE=on prints schema/served-with-node.graphql', async () => {
  const { stdout } = await runHere(['schema', 'print'], { NODE_INTERFACE: 'on' });
  const golden = buildSchema(readFileSync('schema/served-with-node.graphql', 'utf8'));
  expect(stdout).toBe(`${printSchema(lexicographicSortSchema(golden))}\n`);
});

test('the id of a record is the same global id everywhere, and node(id:) returns the record', async () => {
  const { data, errors } = await gateway.ask<Answer>(`mutation { open(id: 2) { id recordId } }`);
  expect(errors).toBeUndefined();
  const { id } = data.open!;
  expect(data.open).toEqual({ id, recordId: 2 });
  const everywhere = await gateway.ask<Record<string, unknown>>(
    `query ($id: ID!) {
      vacancies(first: 2) { items { id } }
      vacanciesConnection(first: 2) { nodes { x: id recordId: name id: recordId } }
      allVacancies(limit: 2) { id title }
      named(first: 2) { items { id recordId } }
      vacancy(id: 2) { id }
      candidate(id: 2) { vacancy { id } }
      node(id: $id) { __typename id ... on Vacancy { title recordId } ... on Candidate { score } }
    }`,
    { id },
  );
  expect(everywhere.errors).toBeUndefined();
  expect(everywhere.data).toMatchObject({
    vacancies: { items: [{ id: expect.any(String) }, { id }] },
    vacanciesConnection: { nodes: [{}, { x: id, recordId: 'Vacancy 2', id: 2 }] },
    allVacancies: [{}, { id, title: 'Title 2' }],
    named: { items: [{}, { id, recordId: 2 }] },
    vacancy: { id },
    node: { __typename: 'Vacancy', id, title: 'Title 2', recordId: 2 },
  });
});

test('records of two types with one id have two global ids', async () => {
  const sdl = `
    type A { id: ID! } type B { id: ID! }
    type APage { items: [A!]! pageInfo: Info! } type BPage { items: [B!]! pageInfo: Info! }
    type Info { hasNextPage: Boolean! endCursor: String }
    type Query { as(first: Int, after: String): APage! bs(first: Int, after: String): BPage! }`;
  const schema = makeExecutableSchema(sdl, { Query: { as: onePage, bs: onePage } });
  await using world = await startGatewayOverFake(
    { schema },
    { snapshot: sdl, config: { nodeInterface: true } },
  );
  const { data } = await world.ask<Record<'allAs' | 'allBs', { id: string }[]>>(
    '{ allAs { id } allBs { id } }',
  );
  const ids = [data.allAs[0]!.id, data.allBs[0]!.id];
  expect(ids[0]).not.toBe(ids[1]);
  const nodes = await world.ask(
    `query ($ids: [ID!]!) { nodes(ids: $ids) { id ... on A { recordId } ... on B { recordId } } }`,
    { ids },
  );
  expect(nodes.data).toEqual({ nodes: ids.map((id) => ({ id, recordId: 'é"1' })) });
});

test('nodes(ids:) requests the records of each type together, and keeps the order of the ids', async () => {
  const [vacancies, candidates] = [idsOf('Vacancy', 3), idsOf('Candidate', 4)];
  const gone = globalId('Candidate:600');
  const ids = [...candidates, ...vacancies.toReversed(), gone, candidates[0]!];
  counted = upstream.received.length;
  const { data, errors } = await gateway.ask(
    `query ($ids: [ID!]!) { nodes(ids: $ids) { ...Id ... on Vacancy { title } } }
     fragment Id on Node { key: id }`,
    { ids },
  );
  expect(errors).toBeUndefined();
  expect(data).toEqual({
    nodes: [
      ...candidates.map((key) => ({ key })),
      ...vacancies.map((key, at) => ({ key, title: `Title ${at + 1}` })).toReversed(),
      null,
      { key: candidates[0] },
    ],
  });
  expect(upstream.received.length - counted).toBe(2);
});

test('fragments on Node apply to records of any list, also among types that do not implement it', async () => {
  const { data, errors } = await gateway.ask<{ allVacancies: { allContacts: object[] }[] }>(
    `{ allVacancies(limit: 7) { ...Node allContacts(limit: 6) { ...Ids ...Node } } }
     fragment Ids on Contact { ... on Candidate { id } ... on Agency { id } }
     fragment Node on Node { __isNode: __typename same: id ...Deep ... on Named { name } }
     fragment Deep on Node { ... on Candidate { lead: vacancy { ... on Node { id } } } ... on Vacancy { title } }`,
  );
  expect(errors).toBeUndefined();
  const [vacancy] = idsOf('Vacancy', 1);
  expect(data.allVacancies[0]).toMatchObject({
    __isNode: 'Vacancy',
    same: vacancy,
    name: 'Vacancy 1',
    title: 'Title 1',
  });
  const [candidate] = idsOf('Candidate', 1);
  const contacts = data.allVacancies[6]!.allContacts;
  // An Agency cannot be found by its id, so it is no Node, but its id is global.
  expect(contacts[0]).toEqual({ id: globalId('Agency:a1') });
  expect(contacts[5]).toEqual({
    id: candidate,
    __isNode: 'Candidate',
    same: candidate,
    name: 'Candidate 1',
    lead: { id: globalId('Vacancy:2') },
  });
});

test('id and recordId under one alias, requested at the same time, are not confused', async () => {
  await using world = await startGatewayOverSandbox({}, { config: { nodeInterface: true } });
  const [first] = world.sandbox.persons.slice(0, 1);
  const [id, recordId, both] = await Promise.all(
    ['id', 'recordId']
      .map((field) => `{ persons(first: 1) { items { x: ${field} } } }`)
      .concat('{ a: allPersons(limit: 1) { x: id } b: allPersons(limit: 1) { x: recordId } }')
      .map(async (query) => (await world.ask(query)).data),
  );
  const [recordKey, global] = [{ x: first!.id }, { x: globalId(`Person:${first!.id}`) }];
  expect(id).toEqual({ persons: { items: [global] } });
  expect(recordId).toEqual({ persons: { items: [recordKey] } });
  expect(both).toEqual({ a: [global], b: [recordKey] });
});

test('records of node(id:) are sent whole, without waiting for @defer', async () => {
  const { data, errors } = await gateway.ask(
    `{ node(id: "${globalId('Candidate:1')}") {
         ... on Candidate @defer { name vacancy { id ... @defer { title } } } } }`,
    {},
    { headers: { accept: 'multipart/mixed; deferSpec=20220824, application/json' } },
  );
  expect(errors).toBeUndefined();
  expect(data).toEqual({
    node: { name: 'Candidate 1', vacancy: { id: globalId('Vacancy:2'), title: 'Title 2' } },
  });
});

test('streamed and deferred records have global ids too', async () => {
  const parts = await all(
    gateway,
    `{ allVacancies @stream(initialCount: 1) { ...Id lead { ... on Node @defer { id } } }
       vacanciesConnection(first: 2) { edges @stream(initialCount: 1) { node { ...Id } } } }
     fragment Id on Node { key: id }`,
  );
  const { allVacancies, vacanciesConnection } = putTogether(parts) as unknown as Streamed;
  const keys = idsOf('Vacancy', 8).map((key) => ({ key }));
  expect(allVacancies).toMatchObject(keys);
  expect(allVacancies[0]!.lead).toEqual({ id: globalId('Candidate:3') });
  expect(vacanciesConnection.edges).toEqual(keys.slice(0, 2).map((node) => ({ node })));
});

test('node(id:) says what is wrong with an id that is not global, or of a type that is not found by its id', async () => {
  const wrong = ['1', globalId('Vacancy:1').replace('V', 'W'), `${globalId('Vacancy:1')}=`];
  const { data, errors } = await gateway.ask('query ($ids: [ID!]!) { nodes(ids: $ids) { id } }', {
    ids: [...wrong, globalId('Agency:a1'), globalId('Vacancy:one')],
  });
  expect(data).toEqual({ nodes: [null, null, null, null, null] });
  const notGlobal = expect.stringMatching(/^This is not a global id\. Pass the `id` of a record/);
  expect(errors).toEqual(
    [
      notGlobal,
      notGlobal,
      notGlobal,
      expect.stringMatching(/^No record of this type can be found by its id here\./),
      'The id of a Vacancy must be of the type Int, and this one is not.',
    ].map((message, at) => ({
      message: message as string,
      path: ['nodes', at],
      extensions: { code: 'BAD_USER_INPUT' },
    })),
  );
});

test('person(id:) and representations take the global id and the id of the service', async () => {
  await using world = await startGatewayOverSandbox({}, { config: { nodeInterface: true } });
  const [first] = world.sandbox.persons.slice(0, 1);
  const person = { id: globalId(`Person:${first!.id}`), recordId: first!.id };
  const { data, errors } = await world.ask(
    `query ($id: ID!, $recordId: ID!, $all: [_Any!]!) {
      node(id: $id) { id ... on Person { recordId } }
      byId: person(id: $id) { id recordId }
      byRecordId: person(id: $recordId) { id recordId }
      ofAnother: person(id: "${globalId('Vacancy:1')}") { id }
      _entities(representations: $all) { ... on Person { id recordId } }
    }`,
    {
      ...person,
      all: [{ id: person.id }, { id: person.recordId }, { recordId: person.recordId }].map(
        (keys) => ({ __typename: 'Person', ...keys }),
      ),
    },
  );
  expect(data).toEqual({
    node: person,
    byId: person,
    byRecordId: person,
    ofAnother: null,
    _entities: [person, person, person],
  });
  // The example of the documentation.
  const again = await world.ask(blockWith('docs/relay.md', 'query Again'), {
    id: person.id,
    ids: [person.id],
  });
  expect(again).toEqual({
    data: {
      node: { ...person, firstName: first!.firstName },
      nodes: [{ __typename: 'Person', id: person.id }],
    },
  });
  expect(errors).toEqual([
    {
      message: 'This is the global id of another type. Pass the id of a Person.',
      path: ['ofAnother'],
      extensions: { code: 'BAD_USER_INPUT' },
    },
  ]);
});

test('the subgraph has both ids as keys', async () => {
  const { stdout } = await runHere(['schema', 'print', '--subgraph'], { NODE_INTERFACE: 'on' });
  expect(stdout).toContain(
    'type Person implements Node @key(fields: "id") @key(fields: "recordId")',
  );
});

test('schema explain says which types implement Node, and why others do not', async () => {
  const { reports } = servedOffline(
    `type A { id: ID } type B { id: Int! } type C { id: ID! }
     type Query { a(id: ID!): A b(id: Int!): B c(name: String): C }`,
    { nodeInterface: true },
  );
  expect(
    Object.fromEntries(
      reports.map((report) => ['type' in report && report.type, report.why.at(-1)]),
    ),
  ).toEqual({
    A: "Its id is global, and the service's own id is recordId; it does not implement Node: the service may return null as id.",
    B: "Its id is global, and the service's own id is recordId; node(id: …) returns it.",
    C: "Its id is global, and the service's own id is recordId; it does not implement Node: it cannot be found by its id.",
  });
});

test('names that the service uses itself are kept: recordId is renamed, and Node is not derived', () => {
  const renamed = servedOffline(
    `interface Own { id: Int! recordId: String } type A implements Own { id: Int! recordId: String }
     type Query { a(id: Int!): A own: Own }`,
    { nodeInterface: true },
  );
  expect(printType(renamed.schema.getType('A')!)).toMatch(
    /^type A implements Own & Node \{[^]*id: ID![^]*recordId: String[^]*recordId_: Int!/,
  );
  const taken = servedOffline(
    `interface Node { id: ID! } type A implements Node { id: ID! }
     type Query { a(id: ID!): A node(id: ID!): Node }`,
    { nodeInterface: true },
  );
  expect(taken.nodes).toBeUndefined();
  expect(taken.warnings).toContain(
    'NODE_INTERFACE=on has no effect: a type Node already exists, and a field Query.node already exists. Set NODE_INTERFACE=off.',
  );
  const mixed = servedOffline(
    `interface Own { id: Int! } type A implements Own { id: Int! }
     type Query implements Own { id: Int! a(id: Int!): A }`,
    { nodeInterface: true },
  );
  expect(mixed.warnings).toContain(
    'NODE_INTERFACE=on has no effect: Query implements Own, but its id cannot be global. Set NODE_INTERFACE=off.',
  );
});

test('SCHEMA_PREFIX is put before Node and its fields too', async () => {
  const config = { nodeInterface: true, schemaPrefix: 'Hr' };
  await using world = await startGatewayOverSandbox({}, { config });
  const { data } = await world.ask<{ hrAllPersons: { id: string }[] }>(
    '{ hrAllPersons(limit: 1) { id } }',
  );
  const { id } = data.hrAllPersons[0]!;
  const node = await world.ask(
    `{ hrNode(id: "${id}") { ...Id } } fragment Id on HrNode { __typename id }`,
  );
  expect(node).toEqual({ data: { hrNode: { __typename: 'HrPerson', id } } });
});

/** @param record for example `Person:1` */
function globalId(record: string): string {
  const [type, id] = record.split(':') as [string, string];
  return encodeGlobalId({ type, id });
}

function onePage() {
  return { items: [{ id: 'é"1' }], pageInfo: { hasNextPage: false } };
}

interface Streamed {
  allVacancies: { lead: object }[];
  vacanciesConnection: { edges: object[] };
}

interface Answer {
  open: { id: string; recordId: number } | null;
}

function idsOf(type: 'Vacancy' | 'Candidate', count: number): string[] {
  return Array.from({ length: count }, (_, at) => globalId(`${type}:${1 + at}`));
}
