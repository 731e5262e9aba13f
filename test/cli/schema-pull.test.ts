import { readdirSync, readFileSync } from 'node:fs';
import { buildSchema, introspectionFromSchema } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { json, refusal, text, type Reply, introspected } from '../support/imitations/scripted.ts';
import { startSchemaOperator, type SchemaOperator } from './schema-operator.ts';

let operator: SchemaOperator;
beforeAll(async () => {
  operator = await startSchemaOperator();
});
afterAll(() => operator[Symbol.asyncDispose]());

const FILES = ['store', 'upstream.graphql'];
const BEFORE = 'type Query { person(id: ID!): Person } type Person { id: ID! }\n';
const LIVE = `
  type Query { who: Int, person(id: ID!): Person, persons(first: Int, after: String): Page! }
  type Page { pageInfo: Info!, items: [Person!]! }
  type Info { hasNextPage: Boolean!, endCursor: String }
  type Person { name: String, id: ID! }
`;
const PULLED = `type Info {
  endCursor: String
  hasNextPage: Boolean!
}

type Page {
  items: [Person!]!
  pageInfo: Info!
}

type Person {
  id: ID!
  name: String
}

type Query {
  person(id: ID!): Person
  persons(after: String, first: Int): Page!
  who: Int
}
`;

test('schema pull writes the live schema, sorted, into the snapshot, and prints the differences', async () => {
  const { upstream, folder, snapshot, run, put } = operator;
  put(BEFORE);
  upstream.answer(introspected(LIVE));
  const { code, stdout, stderr } = await run('pull');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/was written to .*upstream\.graphql/);
  expect(stdout).toContain("additive (5)\n  Type 'Info' was added\n");
  expect(stdout).toMatch(/\n\nTo serve it, restart the gateway\..*\n$/);
  expect(snapshot()).toBe(PULLED);
  expect(readdirSync(folder)).toEqual(FILES);
  // The order in which the service names its types does not matter: no difference, and nothing is written.
  expect(await run('check')).toMatchObject({ code: 0 });
  expect(await run('pull')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/nothing was written/),
  });
  expect((await run('print')).stdout).toContain('personsConnection');
  expect(upstream.sandbox.exchanges).toHaveLength(1);
});

test('schema pull does not change a snapshot that differs only in form', async () => {
  const { upstream, snapshot, run, put } = operator;
  put(`# mine\n${LIVE}`);
  upstream.answer(introspected(LIVE));
  expect(await run('pull')).toMatchObject({ code: 0 });
  expect(snapshot()).toBe(`# mine\n${LIVE}`);
});

test('schema pull leaves out a flaw that nothing needs, and says where it is', async () => {
  const { upstream, snapshot, run, put } = operator;
  put(BEFORE);
  const answer = { data: introspectionFromSchema(buildSchema(LIVE)) };
  upstream.answer(json(JSON.parse(JSON.stringify(answer).replace('"who"', '"who?"'))));
  expect(await run('pull')).toMatchObject({
    code: 0,
    stderr:
      'The schema of the service is used without Query.who?: this is not a name of GraphQL.\n',
  });
  expect(snapshot()).toBe(PULLED.replace('  who: Int\n', ''));
});

test.each<[string, Reply]>([
  ['does not show its schema', json({ errors: [{ message: 'no' }] })],
  ['shows an empty one', json({ data: { __schema: { types: [], directives: [] } } })],
  ['refuses the token', refusal('token_expired')],
  ['answers with a page', text('<html>')],
])('schema pull does not change the snapshot if the service %s', async (_, reply) => {
  const { upstream, snapshot, folder, run, put } = operator;
  put(BEFORE);
  upstream.answer(reply);
  expect(await run('pull')).toMatchObject({ code: 1, stdout: '' });
  expect(snapshot()).toBe(BEFORE);
  expect(readdirSync(folder)).toEqual(FILES);
});

test('schema pull --output leaves the snapshot as it is', async () => {
  const { upstream, snapshot, file, run, put } = operator;
  put(BEFORE);
  upstream.answer(introspected(LIVE));
  const looked = await run('pull', '--output', file('store/looked-at.graphql'));
  expect(looked).toMatchObject({ code: 0, stderr: '' });
  expect(readFileSync(file('store/looked-at.graphql'), 'utf8')).toBe(PULLED);
  expect(snapshot()).toBe(BEFORE);
});

test('schema pull does not overwrite a file that is not a schema', async () => {
  const { upstream, snapshot, run, put } = operator;
  const before = upstream.received.length;
  put('The minutes of the meeting.\n');
  upstream.answer(introspected(LIVE));
  expect(await run('pull')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/is not a valid GraphQL schema.*Nothing was written over it/s),
  });
  expect(snapshot()).toBe('The minutes of the meeting.\n');
  expect(upstream.received.length).toBe(before);
});

test('schema pull reports when it cannot write', async () => {
  const { upstream, file, run, put } = operator;
  put(BEFORE);
  upstream.answer(introspected(LIVE));
  expect(await run('pull', '--output', file('nowhere/new.graphql'))).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/cannot be written \(ENOENT\).*Check that the folder is there/),
  });
});
