import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  json,
  refusal,
  type Reply,
  introspected,
  introspectedAsIn2016,
  introspectedInGoodFaith,
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
  type Query { person(id: ID!, old: Int @deprecated): Person, at: Day }
  type Person { id: ID!, name: String, stage: Stage }
  enum Stage { NEW }
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
  });
});

test('schema check reads the introspection of a service from 2016', async () => {
  const sdl = SNAPSHOT.replace(', old: Int @deprecated', '').replace(/@specifiedBy.*/, '');
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
    /refuses introspection \(GraphQL introspection is \[2J off\)\. Report this to its support.*by hand/,
  ],
  [
    'shows half of it',
    json({ data: { __schema: null }, errors: [{}] }),
    /refuses introspection \(The recruiting service reported an error\.\)/,
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
    stderr: expect.stringMatching(/no tokens in the token store/),
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
