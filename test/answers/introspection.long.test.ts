import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  buildClientSchema,
  executeSync,
  getIntrospectionQuery,
  parse,
  printSchema,
  type IntrospectionQuery,
} from 'graphql';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { publishedSchemas } from '../same/published-schemas.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import type { TestGateway, TestGatewayOptions } from '../support/gateway/gateway.ts';

const MEGABYTE = 1024 * 1024;

/** Selects about 20 KB of the documented schema under each of these aliases. */
const repeated = (aliases: readonly string[]) =>
  `{ ${aliases.map((alias) => `${alias}: __schema { ...Types }`).join(' ')} }
  fragment Types on __Schema {
    types { kind name description fields(includeDeprecated: true) { ...Field } }
    directives { name description locations args { ...Input } }
  }
  fragment Field on __Field { name description args { ...Input } type { ...Type } }
  fragment Input on __InputValue { name description defaultValue type { ...Type } }
  fragment Type on __Type { kind name ofType { kind name ofType { kind name ofType { name } } } }`;

test('introspection is answered as graphql-js executes it', async () => {
  const gateway = await start();
  const { data } = await gateway.ask(getIntrospectionQuery({ specifiedByUrl: true }));
  const schema = buildClientSchema(data as unknown as IntrospectionQuery);
  for (const [query, variables] of QUERIES) {
    const expected = executeSync({ schema, document: parse(query), variableValues: variables });
    const answer = await gateway.ask(query, variables);
    expect(answer, query).toEqual(JSON.parse(JSON.stringify(expected)));
    // The second answer comes from the pieces that are kept.
    expect(await gateway.ask(query, variables)).toEqual(answer);
  }
});

const ALL = { specifiedByUrl: true, directiveIsRepeatable: true, schemaDescription: true };

const QUERIES: readonly (readonly [query: string, variables?: Record<string, unknown>])[] = [
  [getIntrospectionQuery({ ...ALL, inputValueDeprecation: true, oneOf: true })],
  [repeated(['a', 'b'])],
  ['query ($n: String!) { __type(name: $n) { name fields { name } } }', { n: 'Person' }],
  ['query ($n: String!) { __type(name: $n) { name fields { name } } }', { n: 'Query' }],
  ['query ($n: String!) { __type(name: $n) { name fields { name } } }', { n: 'None' }],
  [
    'query ($d: Boolean! = true) { __type(name: "Query") { fields(includeDeprecated: $d) { name } } }',
    { d: false },
  ],
  [
    'query ($s: Boolean!) { __schema { t: __typename types @skip(if: $s) { name } queryType { name @include(if: $s) kind } } }',
    { s: true },
  ],
  [
    'query ($s: Boolean!) { __schema { t: __typename types @skip(if: $s) { name } queryType { name @include(if: $s) kind } } }',
    { s: false },
  ],
  ['query ($s: Boolean!) { __schema { queryType { name @skip(if: $s) } } }', { s: true }],
  [
    '{ __schema { queryType { name } queryType { k: kind ... on __Type { name possibleTypes { name } } } } }',
  ],
];

test('the fields of `_service` may be skipped', async () => {
  const gateway = await start();
  const query = 'query ($s: Boolean!) { _service { __typename sdl @skip(if: $s) } }';
  expect(await gateway.ask(query, { s: true })).toEqual({
    data: { _service: { __typename: '_Service' } },
  });
  expect(await gateway.ask('{ _service { sdl @include(if: false) } }')).toEqual({
    data: { _service: {} },
  });
});

test('answers to introspection are not kept beyond a few megabytes', async () => {
  const gateway = await start();
  expect(await sizeOf(gateway, repeated(aliasesFrom('first')))).toBeGreaterThan(MEGABYTE / 4);
  const before = await memory();
  for (let i = 1; i <= 60; i += 1) await sizeOf(gateway, repeated(aliasesFrom(`a${i}_`)));
  // Of 30 MB that were sent, 8 may be kept; the documents take about 9.
  expect((await memory()) - before).toBeLessThan(20 * MEGABYTE);
});

test('the SDL of the subgraph is kept once, however it is requested', async () => {
  const gateway = await large();
  expect(await sizeOf(gateway, '{ _service { sdl } }')).toBeGreaterThan(MEGABYTE / 2);
  const before = await memory();
  for (let i = 1; i <= 40; i += 1) await sizeOf(gateway, `{ a${i}: _service { sdl } }`);
  expect((await memory()) - before).toBeLessThan(12 * MEGABYTE);
});

test('answers to introspection count against the memory for answers', async () => {
  const gateway = await start({ config: { answerBytes: 200_000 } });
  const { data, errors } = await gateway.ask(repeated(aliasesFrom('a')));
  expect(data).toBeNull();
  expect(errors?.[0]?.extensions?.['code']).toBe('OPERATION_TOO_COMPLEX');
  expect(await gateway.ask('{ __schema { queryType { name } } }')).toEqual({
    data: { __schema: { queryType: { name: 'Query' } } },
  });
});

test('callers who ask for the same at the same time share one value', async () => {
  const snapshot = printSchema(publishedSchemas[0]![1]());
  const gateway = await start({ snapshot, config: { answerBytes: 5 * MEGABYTE } });
  const ask = () => sizeOf(gateway, repeated(['a', 'b']));
  const sizes = new Set(await Promise.all(Array.from({ length: 10 }, ask)));
  expect(sizes.size).toBe(1);
  expect([...sizes][0]).toBeGreaterThan(MEGABYTE);
});

test('other callers are answered while a large schema is written', async () => {
  const gateway = await large();
  const writing = { isOver: false };
  const answer = sizeOf(gateway, repeated(['a', 'b', 'c'])).finally(() => (writing.isOver = true));
  let others = 0;
  while (!writing.isOver) {
    await gateway.ask('{ __typename }');
    others += 1;
    // Answered in a separate turn, as over a socket.
    await setImmediate();
  }
  expect(await answer).toBeGreaterThan(MEGABYTE);
  // It has more than a hundred pieces.
  expect(others).toBeGreaterThan(10);
});

let started: Promise<TestGateway> | undefined;
afterAll(async () => (await started)?.[Symbol.asyncDispose]());

/** A gateway over a large schema, for several tests: its start takes a second. */
function large(): Promise<TestGateway> {
  started ??= startGatewayOverFake(
    { persons: 0 },
    { snapshot: printSchema(publishedSchemas[0]![1]()) },
  );
  return started;
}

function aliasesFrom(prefix: string): readonly string[] {
  return Array.from({ length: 25 }, (_, at) => `${prefix}${at}`);
}

async function start(options: TestGatewayOptions = {}) {
  const gateway = await startGatewayOverFake({ persons: 0 }, options);
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return gateway;
}

/** Bytes of an answer. Not through `ask`, which keeps all that was written for its search for secrets. */
async function sizeOf({ fetch }: Pick<TestGateway, 'fetch'>, query: string): Promise<number> {
  const headers = { 'content-type': 'application/json', accept: 'application/json' };
  const body = JSON.stringify({ query });
  const response = await fetch('/graphql', { method: 'POST', headers, body });
  return (await response.arrayBuffer()).byteLength;
}

/** Bytes, in the heap and outside it. */
async function memory(): Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // The memory of buffers is released some time after they were collected.
  for (let bytes = Infinity; ;) {
    collect();
    await setImmediate();
    const { heapUsed, external } = process.memoryUsage();
    if (heapUsed + external > bytes - MEGABYTE / 4) return heapUsed + external;
    bytes = heapUsed + external;
  }
}
