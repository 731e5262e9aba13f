import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  json,
  refusal,
  type Reply,
  DIALECTS,
  introspected,
  introspectedAsIn2016,
  introspectedInGoodFaith,
  validated,
} from '../support/imitations/scripted.ts';
import { documentedSdl } from '../support/documented-sdl.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { startSchemaOperator, type SchemaOperator } from './schema-operator.ts';

let operator: SchemaOperator;
beforeAll(async () => {
  operator = await startSchemaOperator();
});
afterAll(() => operator[Symbol.asyncDispose]());

const SNAPSHOT = `
  type Query { person(id: ID!, old: Int @deprecated): Person, who: Somebody, at: Day }
  type Person { id: ID!, name: String, stage: Stage }
  enum Stage { NEW }
  union Somebody = Person
  interface Named { name: String }
  enum Order { ASCENDING }
  input Filter { name: String, order: Order }
  scalar Day @specifiedBy(url: "https://example.com/day")
`;

test.each<[string, (sdl: string) => string, number, string, string | undefined]>([
  ['is the same', (sdl) => sdl, 0, 'is that of the snapshot', undefined],
  [
    'has a field more',
    (sdl) => sdl.replace('name: String', 'name: String, email: String'),
    0,
    "additive (1): nothing fails; what was added is not served\n  Field 'email' was added to object type 'Person'",
    'additive',
  ],
  [
    'takes an argument more',
    (sdl) => sdl.replace('id: ID!,', 'id: ID!, at: Int,'),
    0,
    "Argument 'at: Int' added",
    'additive',
  ],
  [
    'takes a value more',
    (sdl) => sdl.replace('ASCENDING', 'ASCENDING DESCENDING'),
    0,
    "Enum value 'DESCENDING' was added",
    'additive',
  ],
  [
    'has another implementation of an interface',
    (sdl) => sdl.replace('type Person', 'type Person implements Named'),
    1,
    "'Person' object implements 'Named' interface",
    'dangerous',
  ],
  [
    'describes something',
    (sdl) => sdl.replace('type Person', '"""Some\u009b31m\nbody""" type Person'),
    0,
    "Object type 'Person' has description 'Some 31m body'",
    'additive',
  ],
  [
    'has a field less',
    (sdl) => sdl.replace('name: String,', ''),
    1,
    "breaking (1): requests that callers may send fail, or return something else\n  Field 'name' was removed from object type 'Person'",
    'breaking',
  ],
  [
    'wants one of the fields of an input',
    (sdl) => sdl.replace('input Filter', 'input Filter @oneOf'),
    1,
    "Directive 'oneOf' was added to input object 'Filter'",
    'breaking',
  ],
  [
    'has a value more that may be answered',
    (sdl) => sdl.replace('NEW', 'NEW HIRED'),
    1,
    "dangerous (1): answers may contain what the snapshot does not define, or a default has changed\n  Enum value 'HIRED'",
    'dangerous',
  ],
])(
  'schema check reports the consequences if the service %s',
  async (_, change, code, text, kind) => {
    const { upstream, run, put, snapshot } = operator;
    put(SNAPSHOT);
    upstream.answer(introspected(change(SNAPSHOT)));
    const said = await run('check');
    expect(said).toMatchObject({ code, stderr: '' });
    expect(said.stdout).toContain(text);
    const kinds = [...said.stdout.matchAll(/^(\w+) \(\d+\): /gm)].map(([, each]) => each);
    expect(kinds).toEqual(kind === undefined ? [] : [kind]);
    expect(snapshot()).toBe(SNAPSHOT);
  },
);

test('schema check --json prints the same as JSON', async () => {
  const { upstream, run, put, env } = operator;
  put(SNAPSHOT);
  upstream.answer(introspected(SNAPSHOT.replace('name: String,', '')));
  const { code, stdout } = await run('check', '--json');
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toEqual({
    service: new URL(upstream.url).host,
    snapshot: env['RECRUITING_SCHEMA'],
    breaking: [
      { message: "Field 'name' was removed from object type 'Person'", path: 'Person.name' },
    ],
    dangerous: [],
    additive: [],
    unseen: [],
  });
});

test('schema check does not report as removed what an older service cannot describe', async () => {
  const sdl = SNAPSHOT.replace(', old: Int @deprecated', '');
  const { upstream, run, put } = operator;
  put(sdl);
  upstream.answer(introspectedAsIn2016(sdl));
  expect(await run('check')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('is that of the snapshot'),
  });
});

const hidden: Reply = json({ errors: [{ message: 'GraphQL introspection is\u001b[2J off' }] }, 400);

test.each<[string, Reply, RegExp]>([
  [
    'does not show its schema',
    hidden,
    /does not report its schema \(GraphQL introspection is \[2J off\)\. Nor do its errors list.*Ask its support/,
  ],
  [
    'shows half of it',
    json({ data: { __schema: null }, errors: [{}] }),
    /does not report its schema/,
  ],
  ['shows nothing of it', json({ data: {} }), /reports a schema that is not valid/],
  ['answers no GraphQL', json({}), /not GraphQL JSON/],
  [
    'calls the token expired',
    refusal('token_expired'),
    /has expired\. Run `tokens refresh`; a running gateway does it/,
  ],
  ['refuses the token', refusal('token_revoked'), /demoted or blocked/],
])('schema check ends with exit code 2 if the service %s', async (_, reply, message) => {
  const { upstream, run, put } = operator;
  put(documentedSdl);
  upstream.answer(reply);
  const said = await run('check');
  expect(said).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) });
  // A query spends no refresh token: the only exchange is that of the import.
  expect(upstream.sandbox.exchanges).toHaveLength(1);
});

test('schema check without tokens ends with exit code 2', async () => {
  const env = { ...operator.env, TOKEN_STORE: 'sqlite:nowhere/tokens.db' };
  operator.put(documentedSdl);
  expect(await runHere(['schema', 'check'], env)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/no token set/),
  });
});

test('schema check continues with the token that a gateway has just refreshed', async () => {
  const { upstream, env, run, put } = operator;
  put(documentedSdl);
  const before = upstream.received.length;
  upstream.answer(async (...exchange) => {
    await runHere(['tokens', 'refresh'], env);
    await refusal('token_expired')(...exchange);
  }, introspected(documentedSdl));
  expect(await run('check')).toMatchObject({ code: 0, stderr: '' });
  expect(new Set(upstream.received.slice(before).map(({ token }) => token)).size).toBe(2);
});

test('schema check asks a current graphql-java service once for its schema', async () => {
  const { upstream, run, put } = operator;
  put(SNAPSHOT);
  upstream.answer(introspectedInGoodFaith(SNAPSHOT));
  const before = upstream.received.length;
  expect(await run('check')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('is that of the snapshot'),
  });
  expect(upstream.received.length).toBe(before + 1);
});

const CLOSED = `
  directive @inContext(country: String) on QUERY
  type Query {
    persons(first: Int, after: String, filter: Filter, sort: Sort): Persons!
    person(id: Int!): Result
    old: Int
  }
  type Mutation { rename(id: Int!): Person }
  type Persons { items: [Person!]! }
  union Result = Person | Failure
  type Failure { message: String! }
  type Person { id: Int! name: String email: String stage: Stage }
  enum Stage { NEW HIRED }
  enum Sort { NAME ID }
  input Filter { name: String stage: Stage }
`;

describe.each(Object.entries(DIALECTS))('if introspection of %s is closed', (_, dialect) => {
  test.each<[string, (sdl: string) => string, string[]]>([
    ['is the same', (sdl) => sdl, []],
    [
      'has a field less, and another one more',
      (sdl) => sdl.replace('email: String', 'mail: String'),
      ["Field 'email' was removed from object type 'Person'"],
    ],
    [
      'has fields less at several types',
      (sdl) => sdl.replace('email: String', '').replace('old: Int', ''),
      [
        "Field 'email' was removed from object type 'Person'",
        "Field 'old' was removed from object type 'Query'",
      ],
    ],
    [
      'takes an argument less',
      (sdl) => sdl.replace('after: String, ', ''),
      ["Argument 'after' was removed from field 'Query.persons'"],
    ],
    [
      'has an enum value less',
      (sdl) => sdl.replace('NEW HIRED', 'NEW'),
      ["Enum value 'HIRED' was removed from enum 'Stage'"],
    ],
    [
      'has an input field less',
      (sdl) => sdl.replace('input Filter { name: String', 'input Filter {'),
      ["Input field 'name' was removed from input object type 'Filter'"],
    ],
    [
      'has a member less',
      (sdl) => sdl.replace('= Person | Failure', '= Person'),
      ["Member 'Failure' was removed from Union type 'Result'"],
    ],
  ])('schema check finds out that the service %s', async (__, change, messages) => {
    const { upstream, run, put } = operator;
    put(CLOSED);
    upstream.answer(validated(change(CLOSED), dialect));
    const before = upstream.received.length;
    const { code, stdout, stderr } = await run('check', '--json');
    const report = JSON.parse(stdout) as Record<string, { message: string }[]>;
    expect(stderr).toBe('');
    expect(report['breaking']!.map(({ message }) => message).toSorted()).toEqual(messages);
    expect(code).toBe(messages.length > 0 ? 1 : 0);
    expect(report).toMatchObject({ dangerous: [], additive: [] });
    expect(stdout).toMatch(
      /Additions cannot be seen.*Mutations were not.*Directives were not checked: @inContext\./s,
    );
    expect(upstream.received.length - before).toBeLessThan(30);
  });
});

test('schema check stops if a service without introspection executes what it should refuse', async () => {
  const { upstream, run, put } = operator;
  put(CLOSED);
  const executes = json({ data: {} });
  upstream.answer(hidden, hidden, executes);
  const before = upstream.received.length;
  const said = await run('check');
  expect(said).toMatchObject({ code: 2, stdout: '' });
  expect(said.stderr).toMatch(/executed a document with a field that does not exist/);
  expect(upstream.received.length).toBe(before + 3);
  expect(upstream.received.at(-1)!.body).toContain('@skip(if: true)');
});
