import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startService, type Service } from '../service/service.ts';
import { askAt, type GraphqlAnswer } from '../support/gateway/ask-at.ts';
import { makeExecutableSchema, personPages } from '../support/imitations/honest.ts';
import { startServe, type Program, type Served } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const SDL = `
  type Query {
    persons(first: Int, after: String): PersonPage!
    dictionaries(language: String): [Dictionary!]!
  }
  type Mutation { rename: Boolean }
  type Dictionary { name: String! entries: [DictionaryEntry!]! owner: Person }
  type DictionaryEntry { key: String! label: String secret: String }
  type PersonPage { items: [Person!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type Person { id: ID! }
`;
const READER = 'key-of-a-reader';
const WRITER = 'key-of-a-writer';
const folder = temporaryFolder();
let sandbox: Service;
let gateway: Program & Served;
beforeAll(async () => {
  const dictionary = {
    name: 'stages',
    entries: [{ key: 'new', label: 'New', secret: 'x' }],
    owner: { id: 'p1' },
  };
  sandbox = await startService({
    schema: makeExecutableSchema(SDL, {
      Query: { persons: personPages(['p1', 'p2']), dictionaries: () => [dictionary] },
      Mutation: { rename: () => true },
    }),
  });
  writeFileSync(folder.file('upstream.graphql'), SDL);
  gateway = await startServe({
    unbundled: true,
    env: {
      RECRUITING_URL: sandbox.url,
      RECRUITING_SCHEMA: folder.file('upstream.graphql'),
      TOKEN_LINK: sandbox.tokenLink,
      TOKEN_STORE: `sqlite:${folder.file('tokens.db')}`,
      AUTH_API_KEYS: [entry('reader', READER, 'read'), entry('writer', WRITER, 'write')].join(),
      MUTATIONS: 'all',
      GATEWAY_CONFIG: resolve('examples/cached-dictionaries/gateway.config.ts'),
    },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await sandbox.close();
  folder[Symbol.dispose]();
});

/** Sends an operation twice. Returns the second answer, and how many upstream requests it cost. */
async function again(query: string, key = READER): Promise<[GraphqlAnswer, requests: number]> {
  const first = await askAt(gateway.url, query, {}, { 'x-api-key': key });
  const { graphql } = sandbox.stats;
  const second = await askAt(gateway.url, query, {}, { 'x-api-key': key });
  expect(second).toEqual(first);
  return [second, sandbox.stats.graphql - graphql];
}

test.each([
  ['a plain query', '{ dictionaries { name entries { key label } } }'],
  [
    'aliases and fragments',
    'query D { all: dictionaries { ...F __typename } } fragment F on Dictionary { n: name }',
  ],
  ['another value of an argument', '{ dictionaries(language: "de") { name } }'],
])(
  'examples/cached-dictionaries: fields that hardly change cost one request, with %s',
  async (_, query) => {
    const [{ data, errors }, requests] = await again(query);
    expect(errors).toBeUndefined();
    expect(JSON.stringify(data)).toContain('stages');
    expect(requests).toBe(0);
  },
);

test.each([
  ['persons', '{ persons(first: 1) { items { id } } }'],
  ['dictionaries beside persons', '{ dictionaries { name } allPersons { id } }'],
  ['a person below a dictionary', '{ dictionaries { name owner { id } } }'],
  [
    'a person in a fragment',
    '{ ...F } fragment F on Query { dictionaries { ... { owner { id } } } }',
  ],
  ['a field that is not listed', '{ dictionaries { entries { key secret } } }'],
  ['an alias that has the name of a listed field', '{ dictionaries: allPersons { id } }'],
  ['a skipped person', '{ dictionaries { name owner @skip(if: true) { id } } }'],
])('examples/cached-dictionaries: an operation with %s is sent each time', async (_, query) => {
  const [{ data, errors }, requests] = await again(query);
  expect(errors).toBeUndefined();
  expect(data).toBeDefined();
  expect(requests).toBeGreaterThan(0);
});

test('examples/cached-dictionaries: a mutation is sent each time', async () => {
  const [answer, requests] = await again('mutation { rename }', WRITER);
  expect([answer, requests]).toEqual([{ data: { rename: true } }, 1]);
});

test('examples/cached-dictionaries: a kept answer is not given to callers who may not read', async () => {
  const query = '{ dictionaries { name entries { key label } } }';
  expect((await again(query))[1]).toBe(0);
  for (const [key, code] of [
    ['', 'UNAUTHENTICATED'],
    [WRITER, 'FORBIDDEN'],
  ] as const) {
    const answer = await askAt(gateway.url, query, {}, { 'x-api-key': key });
    expect(answer).toMatchObject({ errors: [{ extensions: { code } }] });
    expect(answer.data ?? null).toBeNull();
  }
});

test('examples/cached-dictionaries: operations that cannot be parsed get the error of the gateway', async () => {
  const headers = { 'x-api-key': READER };
  expect(await askAt(gateway.url, '{ dictionaries {', {}, headers)).toMatchObject({
    errors: [{ message: expect.stringContaining('Syntax Error') }],
  });
});

function entry(name: string, key: string, scope: string): string {
  return `${name}:${createHash('sha256').update(key).digest('hex')}:${scope}`;
}
