import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { runHere } from '../support/gateway/run-here.ts';
import { introspected } from '../support/imitations/scripted.ts';
import { startSchemaOperator, type SchemaOperator } from './schema-operator.ts';

let operator: SchemaOperator;
beforeAll(async () => {
  operator = await startSchemaOperator();
});
afterAll(() => operator[Symbol.asyncDispose]());
beforeEach(() => {
  operator.put(SNAPSHOT);
  rmSync(operator.file('app'), { recursive: true, force: true });
  rmSync(operator.file('adapters.json'), { force: true });
});

const SNAPSHOT = `
  type Query {
    persons(first: Int, after: String, filter: Filter): Persons!
    person(id: Int!): Result
    jobs(first: Int, after: String): Jobs!
    old: Int
  }
  type Mutation { rename(id: Int!, name: String!): Person }
  type Persons { items: [Person!]! pageInfo: PageInfo! }
  type Jobs { items: [Job!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  union Result = Person | Failure
  type Failure { message: String! }
  interface Named { name: String }
  type Person implements Named { id: Int! name: String email: String stage: Stage job: Job }
  type Job implements Named { id: Int! name: String }
  enum Stage { NEW HIRED }
  input Filter { name: String stage: Stage }
`;

const FILES = {
  'people.graphql': `# What the list shows.
query People {
  allPersons(limit: 5) { ...Row }
}

query Hired { persons(filter: { stage: HIRED }) { items { id } } }`,
  'row.gql': `fragment Row on Person {
  id
  email
}`,
  'parts/jobs.graphql': `query Jobs { jobsConnection(first: 2) { nodes { id ...N } } }
fragment N on Named { name }`,
  'parts/rename.graphql': 'mutation Rename { rename(id: 1, name: "x") { id } }',
  'schema.graphql': 'type Query { nothing: Int }',
  'node_modules/other/broken.graphql': '{ nowhere }',
  '.cache/broken.graphql': '{ nowhere }',
};

describe('if the service changes', () => {
  test.each<[string, (sdl: string) => string, readonly string[]]>([
    ['is the same', (sdl) => sdl, []],
    ['has a field more', (sdl) => sdl.replace('email: String', 'email: String phone: String'), []],
    ['has a field less that no document uses', (sdl) => sdl.replace('old: Int', ''), []],
    [
      'has a field less',
      (sdl) => sdl.replace('email: String', 'mail: String'),
      ['people.graphql:2 query People', 'row.gql:3:3 Cannot query field "email" on type "Person".'],
    ],
    [
      'has an enum value less',
      (sdl) => sdl.replace('NEW HIRED', 'NEW'),
      [
        'people.graphql:6 query Hired',
        'people.graphql:6:40 Value "HIRED" does not exist in "Stage" enum.',
      ],
    ],
    [
      'has pages of another form',
      (sdl) => sdl.replace('type Jobs { items', 'type Jobs { entries'),
      [
        'parts/jobs.graphql:1 query Jobs',
        'parts/jobs.graphql:1:14 Cannot query field "jobsConnection" on type "Query".',
      ],
    ],
    [
      'has a type less',
      (sdl) =>
        sdl
          .replace('jobs(first: Int, after: String): Jobs!', '')
          .replace(' job: Job', '')
          .replace(/type Jobs? .*\n/g, ''),
      [
        'parts/jobs.graphql:1 query Jobs',
        'parts/jobs.graphql:1:14 Cannot query field "jobsConnection" on type "Query".',
      ],
    ],
  ])('schema check --documents lists what breaks if it %s', async (__, change, expected) => {
    put(FILES);
    const live = change(SNAPSHOT);
    operator.upstream.answer(introspected(live));
    const { code, stdout, stderr } = await operator.run('check', '--documents', app());
    expect(stderr).toBe('');
    const broken = expected.filter((line) => /graphql:\d+ /.test(line)).length;
    const end = broken > 0 ? ':' : '.';
    expect(stdout).toContain(
      `\n${broken} of 4 operations in ${app()} break with the live schema${end}\n`,
    );
    const lines = stdout.split('\n').filter((line) => line.includes(`${app()}/`));
    expect(
      lines.map(
        (line) =>
          line
            .trim()
            .slice(app().length + 1)
            .split(' Did you')[0],
      ),
    ).toEqual(expected);
    expect(code).toBe(live === SNAPSHOT || live.includes('phone') ? 0 : 1);
  });

  test('schema check --documents counts the settings that change what is served', async () => {
    const env = { ...operator.env, SCHEMA_PREFIX: 'My', NODE_INTERFACE: 'on' };
    writeFileSync(
      operator.file('adapters.json'),
      JSON.stringify({ fields: { 'Query.myPersons': { all: 'myEverybody' } } }),
    );
    put({
      'a.graphql': '{ myEverybody { id email } }',
      'b.graphql': 'query B { myNode(id: "x") { ... on MyPerson { name } } }',
    });
    operator.upstream.answer(introspected(SNAPSHOT.replace('email: String', '')));
    const { stdout } = await runHere(['schema', 'check', '--json', '--documents', app()], env);
    expect(JSON.parse(stdout)).toMatchObject({
      documents: {
        operations: 2,
        broken: [{ file: join(app(), 'a.graphql'), operation: 'query without a name' }],
        invalid: [],
      },
    });
  });
});

describe('with an own field in gateway.config.ts', () => {
  test('schema check --documents knows the field, before a change of the service and after it', async () => {
    expect(await checkGreetings(SNAPSHOT)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`0 of 1 operations in ${app()} break`),
    });
    const { code, stdout } = await checkGreetings(SNAPSHOT.replace('email: String', ''));
    expect(code).toBe(1);
    expect(stdout).toContain(`1 of 1 operations in ${app()} break with the live schema:`);
    expect(stdout).toContain('1:41 Cannot query field "email" on type "Person".');
    expect(stdout).not.toContain('"greeting"');
  });

  test('schema check --documents says that the gateway would not start if the field needs what the service removed', async () => {
    const live = SNAPSHOT.replace('name: String email', 'email').replace(
      'type Person implements Named',
      'type Person',
    );
    const { code, stdout } = await checkGreetings(live);
    expect(stdout).toMatch(
      /the gateway would not start with the live schema\. .*Person\.greeting/s,
    );
    expect(code).toBe(2);
  });
});

test('schema check --documents reports separately what is invalid already', async () => {
  put({
    'a.graphql': 'query A {\n  allPersons { email nothing }\n}',
    'b.graphql': 'query B { old',
    'c.graphql': 'query C { old ...Nowhere }',
  });
  operator.upstream.answer(introspected(SNAPSHOT.replace('email: String', '')));
  const { code, stdout } = await operator.run('check', '--json', '--documents', app());
  const { documents } = JSON.parse(stdout) as { documents: unknown };
  const at = (name: string, line: number, column: number, message: string) => ({
    file: join(app(), name),
    line,
    column,
    message: expect.stringContaining(message),
  });
  const operation = (name: string, title: string, ...mistakes: unknown[]) => ({
    file: join(app(), name),
    line: 1,
    operation: title,
    mistakes,
  });
  expect(documents).toEqual({
    path: app(),
    operations: 3,
    broken: [operation('a.graphql', 'query A', at('a.graphql', 2, 16, 'field "email"'))],
    invalid: [
      operation('a.graphql', 'query A', at('a.graphql', 2, 22, 'field "nothing"')),
      operation('b.graphql', 'not GraphQL', at('b.graphql', 1, 14, 'Syntax Error')),
      operation('c.graphql', 'query C', at('c.graphql', 1, 18, 'Unknown fragment "Nowhere"')),
    ],
  });
  expect(code).toBe(1);
});

test('a document that is invalid already does not change the exit code', async () => {
  put({ 'a.graphql': 'query A { nothing }' });
  operator.upstream.answer(introspected(SNAPSHOT));
  const { code, stdout } = await operator.run('check', '--documents', app());
  expect(stdout).toMatch(
    /0 of 1 operations in .* break with the live schema\.\n\n1 of 1 operations in .* have mistakes with the schema that is served today:\n.*a\.graphql:1 query A\n.*a\.graphql:1:11 Cannot query/,
  );
  expect(code).toBe(0);
});

test.each<[string, unknown]>([
  ['of Relay', { id1: 'query A {\n  allPersons { email }\n}', id2: 'query B { old }' }],
  [
    'of Apollo',
    {
      format: 'apollo-persisted-query-manifest',
      version: 1,
      operations: [
        { id: 'id1', name: 'A', type: 'query', body: 'query A {\n  allPersons { email }\n}' },
        { id: 'id2', name: 'B', type: 'query', body: 'query B { old }' },
      ],
    },
  ],
])('schema check --documents takes a manifest %s', async (_, manifest) => {
  put({ 'operations.json': JSON.stringify(manifest) });
  operator.upstream.answer(introspected(SNAPSHOT.replace('email: String', '')));
  const path = join(app(), 'operations.json');
  const { stdout } = await operator.run('check', '--json', '--documents', path);
  expect(JSON.parse(stdout)).toMatchObject({
    documents: {
      operations: 2,
      broken: [
        {
          id: 'id1',
          line: 1,
          operation: 'query A',
          mistakes: [{ id: 'id1', line: 2, column: 16 }],
        },
      ],
      invalid: [],
    },
  });
});

test('a fragment is taken from the nearest file', async () => {
  put({
    'one/query.graphql': 'query One { allPersons { ...F } }',
    'one/fragments/f.graphql': 'fragment F on Person { id }',
    'two/query.graphql': 'query Two { allPersons { ...F } }',
    'two/fragments/f.graphql': 'fragment F on Person { email }',
  });
  operator.upstream.answer(introspected(SNAPSHOT.replace('email: String', '')));
  const { stdout } = await operator.run('check', '--json', '--documents', app());
  const { documents } = JSON.parse(stdout) as { documents: { broken: unknown[] } };
  expect(documents.broken).toEqual([expect.objectContaining({ operation: 'query Two' })]);
});

test('documents are not checked if the gateway would not start with the live schema', async () => {
  writeFileSync(
    operator.file('adapters.json'),
    JSON.stringify({ fields: { 'Query.jobs': { skip: true } } }),
  );
  put({ 'a.graphql': '{ old }' });
  operator.upstream.answer(introspected(SNAPSHOT.replace('jobs(', 'positions(')));
  const { code, stdout } = await operator.run('check', '--documents', app());
  expect(stdout).toMatch(
    /Field 'jobs' was removed.*were not checked: the gateway would not start/s,
  );
  expect(code).toBe(2);
});

test.each<[string, Record<string, string>, string, RegExp]>([
  ['a folder that does not exist', {}, 'nowhere', /nowhere cannot be read \(ENOENT\)/],
  [
    'a folder without operations',
    { 'f.graphql': 'fragment F on Person { id }' },
    '',
    /no operations/,
  ],
  ['a file that is not JSON', { 'a.json': '{' }, 'a.json', /a\.json is not JSON/],
  ['another manifest', { 'a.json': '[]' }, 'a.json', /is not a manifest\. It must be/],
])(
  'schema check --documents refuses %s before it asks the service',
  async (_, files, path, message) => {
    put(files);
    const before = operator.upstream.received.length;
    expect(await operator.run('check', '--documents', join(app(), path))).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(message),
    });
    expect(operator.upstream.received.length).toBe(before);
  },
);

function app(): string {
  return operator.file('app');
}

function put(files: Record<string, string>): void {
  mkdirSync(app(), { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(app(), name)), { recursive: true });
    writeFileSync(join(app(), name), text);
  }
}

/** With one document that uses the field. */
function checkGreetings(live: string) {
  put({ 'a.graphql': 'query Greetings { allPersons { greeting email } }' });
  const config = operator.file('gateway.config.ts');
  writeFileSync(
    config,
    `export default {
      typeDefs: 'extend type Person { greeting: String! }',
      resolvers: { Person: { greeting: { selectionSet: '{ name }', resolve: (person) => person.name } } },
    };`,
  );
  operator.upstream.answer(introspected(live));
  const env = { ...operator.env, GATEWAY_CONFIG: config };
  return runHere(['schema', 'check', '--documents', app()], env);
}
