import { mkdirSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { refusingAddress, startServer } from '../support/test-server.ts';

/** The whole environment of a job in CI: no address of the service, no token store. */
let env: { readonly RECRUITING_SCHEMA: string };
let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
  env = { RECRUITING_SCHEMA: folder.file('upstream.graphql') };
  writeFileSync(env.RECRUITING_SCHEMA, SNAPSHOT);
});
afterEach(() => folder[Symbol.dispose]());

const SNAPSHOT = `
  type Query { persons(first: Int, after: String): PersonPage! old(id: Int = 1): Int @deprecated }
  type PersonPage { items: [Person!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type Person @key(fields: "id") { id: ID! name: String email: String stage: Stage }
  enum Stage { NEW }
  input Choice { a: Int b: Int }
`;

const CHANGES: readonly (readonly [
  title: string,
  change: (sdl: string) => string,
  code: number,
  report: object,
])[] = [
  ['the same schema', (sdl) => sdl, 0, {}],
  [
    'a field more',
    (sdl) => sdl.replace('email: String', 'email: String phone: String'),
    0,
    {
      additive: [
        { message: "Field 'phone' was added to object type 'Person'", path: 'Person.phone' },
      ],
    },
  ],
  [
    'a field less',
    (sdl) => sdl.replace('email: String', ''),
    1,
    {
      breaking: [
        { message: "Field 'email' was removed from object type 'Person'", path: 'Person.email' },
      ],
    },
  ],
  [
    'an enum value more',
    (sdl) => sdl.replace('NEW', 'NEW HIRED'),
    1,
    {
      dangerous: [{ message: "Enum value 'HIRED' was added to enum 'Stage'", path: 'Stage.HIRED' }],
    },
  ],
  [
    'an input that has become @oneOf',
    (sdl) => sdl.replace('input Choice', 'input Choice @oneOf'),
    1,
    {
      breaking: [
        { message: "Directive 'oneOf' was added to input object 'Choice'", path: 'Choice.@oneOf' },
      ],
    },
  ],
];

describe.each(['a file', 'an address'])('schema check --against %s', (where) => {
  async function placeOf(sdl: string): Promise<string> {
    if (where === 'an address') return `${await startServer(answer(200, sdl))}/live.graphql`;
    writeFileSync(folder.file('live.graphql'), sdl);
    return folder.file('live.graphql');
  }

  test.each(CHANGES)('reports %s, without tokens', async (_, change, code, report) => {
    const against = await placeOf(change(SNAPSHOT));
    const said = await runHere(['schema', 'check', '--json', '--against', against], env);
    expect(said).toMatchObject({ code, stderr: '' });
    expect(JSON.parse(said.stdout)).toEqual({
      service: against,
      snapshot: env.RECRUITING_SCHEMA,
      breaking: [],
      dangerous: [],
      additive: [],
      ...report,
    });
  });

  test('also checks operations of clients against what would be served', async () => {
    writeFileSync(
      folder.file('app.graphql'),
      'query Names { allPersons { name } }\nquery Mail { allPersons { email } }',
    );
    const against = await placeOf(SNAPSHOT.replace('email: String', ''));
    const args = ['schema', 'check', '--against', against, '--documents'];
    const { code, stdout } = await runHere([...args, folder.file('app.graphql')], env);
    expect(code).toBe(1);
    expect(stdout).toContain(
      `The schema of ${against} is not that of the snapshot (${env.RECRUITING_SCHEMA}).`,
    );
    expect(stdout).toContain(
      `1 of 2 operations in ${folder.file('app.graphql')} break with the schema of ${against}:\n` +
        `  ${folder.file('app.graphql')}:2 query Mail\n`,
    );
    expect(stdout).not.toContain('live schema');
    expect(stdout).not.toContain('schema pull');
  });

  test('ends with exit code 2 if what is there is not a schema', async () => {
    for (const text of ['<!doctype html><p>Sign in</p>', 'type Query {', '{"data":{}}', '']) {
      const against = await placeOf(text);
      expect(await runHere(['schema', 'check', '--against', against], env)).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringMatching(/is not the SDL of a schema: .*\. .*`schema pull --output/s),
      });
    }
  });
});

describe('schema check --against a file with an adapters.json beside it', () => {
  beforeEach(() => {
    mkdirSync(folder.file('next'));
    put('next/upstream.graphql', SNAPSHOT);
    put('app.graphql', 'query Names { allPersons { name } }');
  });

  test('finds operations that break because of that file alone', async () => {
    put('next/adapters.json', { fields: { 'Query.persons': { all: 'everybody' } } });
    const { code, stdout } = await checkNext();
    expect(code).toBe(1);
    expect(stdout).toContain(
      `1 of 1 operations in ${folder.file('app.graphql')} break with the schema of ${folder.file('next/upstream.graphql')}` +
        ` and the adapters.json beside it:\n`,
    );
    expect(stdout).toContain('Cannot query field "allPersons" on type "Query".');
  });

  test('checks each schema with its own, if both files have changed', async () => {
    put('adapters.json', { fields: { 'Query.persons': { all: 'everyone' } } });
    put('next/upstream.graphql', SNAPSHOT.replace('persons(', 'people('));
    put('next/adapters.json', { fields: { 'Query.people': { all: 'everyone' } } });
    put('app.graphql', 'query Names { everyone { name } }\nquery Pages { persons { __typename } }');
    const { code, stdout } = await checkNext();
    expect(code).toBe(1);
    expect(stdout).toMatch(/1 of 2 operations in .* break .*:\n.*:2 query Pages\n/);
  });

  test('uses the adapters.json of the snapshot where the file has none beside it', async () => {
    put('adapters.json', { fields: { 'Query.persons': { all: 'everyone' } } });
    put('app.graphql', 'query Names { everyone { name } }');
    expect((await checkNext()).code).toBe(0);
    put('next/adapters.json', {});
    expect((await checkNext()).code).toBe(1);
  });

  test.each([
    ['is not JSON', '{', /next.adapters\.json is not JSON/],
    [
      'does not fit',
      { fields: { 'Query.gone': { skip: true } } },
      /were not checked: the gateway would not start with the schema of .* and the adapters\.json beside it\. \S+next.adapters\.json has a mistake:\n.*Query\.gone/s,
    ],
    [
      'gives a scope to what does not exist',
      { fields: { 'Person.gone': { scope: 'pii' } } },
      /were not checked: .*next.adapters\.json has a mistake:\n.*Person\.gone/s,
    ],
  ])('ends with exit code 2 if that file %s', async (_, content, message) => {
    put('next/adapters.json', content);
    const { code, stdout, stderr } = await checkNext();
    expect(code).toBe(2);
    expect(stdout + stderr).toMatch(message);
  });

  test.each<[string, object]>([
    ['an added field', { fields: { 'Person.greeting': { scope: 'pii' } } }],
    ['an argument of it', { fields: { 'Person.greeting(in:)': { tags: ['pii'] } } }],
    ['a field of an added type', { fields: { 'Review.text': { scope: 'pii' } } }],
    ['an added type', { types: { Review: { scope: 'pii', tags: ['pii'] } } }],
  ])(
    'ignores the scopes and tags of %s in the adapters.json of the snapshot',
    async (_, overrides) => {
      put('adapters.json', overrides);
      put('next/adapters.json', {});
      put('gateway.config.ts', ADDED);
      for (const config of [undefined, folder.file('gateway.config.ts')]) {
        expect(await checkNext(config)).toMatchObject({
          code: 0,
          stdout: expect.stringContaining('0 of 1 operations'),
          stderr: '',
        });
      }
    },
  );

  test.each<[string, object, string]>([
    [
      'another setting of a field that does not exist',
      { fields: { 'Person.greeting': { scope: 'pii', all: 'greetings' } } },
      'fields.Person.greeting: ',
    ],
    [
      'a scope at an argument that does not exist',
      { fields: { 'Query.persons(gone:)': { scope: 'pii' } } },
      'fields.Query.persons(gone:): Query.persons has no argument gone.',
    ],
    [
      'a scope of another form',
      { fields: { 'Person.greeting': { scope: 'p ii' } } },
      'fields.Person.greeting.scope: must be a scope',
    ],
  ])('names the adapters.json of the snapshot if it has %s', async (_, overrides, mistake) => {
    put('adapters.json', overrides);
    put('next/adapters.json', {});
    const { code, stdout, stderr } = await checkNext();
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`${folder.file('adapters.json')} has a mistake:\n- ${mistake}`);
  });
});

test('schema check --against a missing file ends with exit code 2', async () => {
  const args = ['schema', 'check', '--against', folder.file('nowhere.graphql')];
  expect(await runHere(args, env)).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(/nowhere\.graphql cannot be read \(ENOENT\)\. Give the path/),
  });
});

test.each<[string, RequestListener, RegExp]>([
  ['is gone', (_, response) => response.writeHead(404).end(SNAPSHOT), /answered with status 404/],
  [
    'is elsewhere',
    (_, response) => response.writeHead(302, { location: '/other' }).end(),
    /answered with status 302.*[Rr]edirects are not followed/,
  ],
  [
    'is too large',
    (_, response) => response.writeHead(200).end('#'.repeat(17 * 1024 * 1024)),
    /larger than 16 MiB/,
  ],
  ['breaks off', (_, response) => response.destroy(), /cannot be read \(/],
])(
  'schema check --against an address whose schema %s ends with exit code 2',
  async (_, listener, message) => {
    const against = await startServer(listener);
    expect(await runHere(['schema', 'check', '--against', against], env)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(message),
    });
  },
);

test('schema check --against an address that refuses connections ends with exit code 2', async () => {
  const against = await refusingAddress();
  expect(await runHere(['schema', 'check', '--against', against], env)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/cannot be read \(ECONNREFUSED\)/),
  });
});

test('schema check --against an unencrypted address elsewhere is refused, and messages hide its query', async () => {
  const plain = 'http://schemas.example.com/live.graphql?signature=secret';
  const said = await runHere(['schema', 'check', '--against', plain], env);
  expect(said).toMatchObject({ code: 2, stderr: expect.stringMatching(/must begin with https/) });
  expect(said.stderr).not.toContain('secret');

  const signed = `${await startServer(answer(200, SNAPSHOT))}/live.graphql?signature=secret`;
  const { code, stdout } = await runHere(['schema', 'check', '--against', signed], env);
  expect(code).toBe(0);
  expect(stdout).toContain('/live.graphql is that of the snapshot');
  expect(stdout).not.toContain('secret');
});

const ADDED = `export default {
  typeDefs: 'extend type Person { hi: String }',
  resolvers: { Person: { hi: () => 'Hello' } },
};`;

/** Checks the operations in app.graphql against the schema in the folder `next`. */
function checkNext(config?: string) {
  const options = ['--documents', folder.file('app.graphql')];
  const against = folder.file('next/upstream.graphql');
  const added = config === undefined ? {} : { GATEWAY_CONFIG: config };
  return runHere(['schema', 'check', '--against', against, ...options], { ...env, ...added });
}

function put(name: string, content: object | string): void {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  writeFileSync(folder.file(name), text);
}

function answer(status: number, body: string): RequestListener {
  return (_, response) => void response.writeHead(status).end(body);
}
