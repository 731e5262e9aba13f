import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  buildClientSchema,
  executeSync,
  getIntrospectionQuery,
  parse,
  type IntrospectionQuery,
} from 'graphql';
import { expect, onTestFinished, test } from 'vitest';
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
