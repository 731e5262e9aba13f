/** What `export` writes, and what it says and returns. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { exportProgress } from '../../src/cli/export-progress.ts';
import { startService } from '../service/service.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import type { TestGateway } from '../support/gateway/gateway.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { listeningGateway, type ListeningGateway } from '../support/gateway/listening-gateway.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { makeExecutableSchema, type PageArgs, pageOf } from '../service/lists.ts';
import { ManualClock, SECOND } from '../support/random/manual-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const SDL = `
  type Query {
    persons(first: Int, after: String, status: Status): PersonPage!
    members(first: Int, cursor: String, after: Int): Members!
  }
  enum Status { OPEN CLOSED }
  scalar Decimal
  type PersonPage { items: [Person!]! pageInfo: PageInfo! }
  type Person {
    id: ID! firstName: String salary: Decimal active: Boolean tags: [String] home: Home broken: String
    greeting(to: String!): String
  }
  type Home { city: String lines: [String] }
  type Members { items: [Member!]! pageInfo: PageInfo! }
  union Member = Worker | Team
  type Worker { id: Int! firstName: String rank: Int }
  type Team { id: Int! title: String rank: String }
  type PageInfo { hasNextPage: Boolean! endCursor: String }`;

const PEOPLE = [
  { id: '1', firstName: '=HYPERLINK("http://x")', salary: -5, active: false, tags: ['a', 'b'] },
  { id: '2', firstName: 'Ann, "A"\nB', salary: 12.5, home: { city: 'Bern', lines: ['x'] } },
  { id: '3', firstName: '-2+3', salary: 12_345_678_901_234_567_000, tags: [] },
  { id: '4', firstName: '@SUM(A1)', broken: 'yes' },
];
const MEMBERS = Array.from({ length: 60 }, (_, id) =>
  id % 2 === 0
    ? { __typename: 'Worker', id, firstName: `Name ${id}` }
    : { __typename: 'Team', id, title: `Title ${id}` },
);
const OF_MEMBERS = '__typename ... on Worker { id firstName } ... on Team { id title }';

let gateway: TestGateway;
let door: ListeningGateway;
const folder = temporaryFolder('disk');
beforeAll(async () => {
  const schema = makeExecutableSchema(SDL, {
    Query: {
      persons: (_root: unknown, { status }: { status?: string }) => ({
        items: status === 'OPEN' ? PEOPLE.slice(0, 2) : PEOPLE,
        pageInfo: { hasNextPage: false, endCursor: 'x' },
      }),
      members: (_root: unknown, args: PageArgs & { cursor?: string }) =>
        pageOf(MEMBERS, { ...args, after: args.cursor ?? null }, 20),
    },
    Person: {
      broken: ({ broken }: { broken?: string }) => {
        if (broken) throw new Error('The service cannot read this.');
        return 'fine';
      },
    },
  });
  gateway = await startGatewayOverService({ schema }, { snapshot: SDL });
  door = await listeningGateway(gateway);
});
afterAll(async () => {
  await door[Symbol.asyncDispose]();
  await gateway[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});
const run = (...args: string[]) => runHere(['export', ...args, '--url', door.url]);

describe('what is written', () => {
  test.each<[string[], string]>([
    [
      [
        'persons',
        '--format',
        'csv',
        '--fields',
        'id firstName salary active tags home { city lines }',
      ],
      `id,firstName,salary,active,tags,home
1,"'=HYPERLINK(""http://x"")",-5,false,"[""a"",""b""]",
2,"Ann, ""A""\nB",12.5,,,"{""city"":""Bern"",""lines"":[""x""]}"
3,'-2+3,12345678901234567000,,[],
4,'@SUM(A1),,,,
`,
    ],
    [
      ['persons', '--fields', 'salary home { city }', '--limit', '3'],
      '{"salary":-5,"home":null}\n{"salary":12.5,"home":{"city":"Bern"}}\n{"salary":12345678901234567000,"home":null}\n',
    ],
    [['persons', '--args', 'status: OPEN', '--fields', 'id'], '{"id":"1"}\n{"id":"2"}\n'],
    [
      ['allPersons', '--fields', 'name: id ... on Person { __typename }', '--limit', '1'],
      '{"name":"1","__typename":"Person"}\n',
    ],
    // Every field that needs neither a selection nor an argument.
    [
      ['persons', '--format', 'csv', '--limit', '1'],
      'id,firstName,salary,active,tags,broken\n1,"\'=HYPERLINK(""http://x"")",-5,false,"[""a"",""b""]",fine\n',
    ],
    [
      ['members', '--fields', OF_MEMBERS],
      MEMBERS.map((member) => `${JSON.stringify(member)}\n`).join(''),
    ],
  ])('export %j', async (args, content) => {
    expect(await run(...args)).toMatchObject({ code: 0, stdout: content });
  });

  test.each([
    ['persons.CSV', [], 'id\n1\n'],
    ['persons.jsonl', [], '{"id":"1"}\n'],
    ['persons.txt', [], '{"id":"1"}\n'],
    ['persons.txt', ['--format', 'csv'], 'id\n1\n'],
  ])('the name %s with the options %j decides on the format', async (name, options, content) => {
    using others = temporaryFolder();
    const args = ['--fields', 'id', '--limit', '1', '--output', others.file(name), ...options];
    expect(await run('persons', ...args)).toMatchObject({ code: 0, stdout: '' });
    expect(readFileSync(others.file(name), 'utf8')).toBe(content);
    expect(readdirSync(others.path)).toEqual([name]);
  });

  test('values that the service cannot give are null, and the exit code says so', async () => {
    const { code, stdout, stderr } = await run('persons', '--fields', 'id broken');
    expect(code).toBe(3);
    expect(stdout.trimEnd().split('\n').at(-1)).toBe('{"id":"4","broken":null}');
    expect(stderr).toContain('null: 1, for example: The service cannot read this.');
  });

  test('an empty list is a file with a header', async () => {
    await using empty = await startGatewayOverService({ persons: 0 });
    await using emptyDoor = await listeningGateway(empty);
    const file = folder.file('empty.csv');
    const args = ['export', 'persons', '--output', file, '--url', emptyDoor.url];
    expect((await runHere(args)).code).toBe(0);
    expect(readFileSync(file, 'utf8')).toBe('id,firstName\n');
  });
});

test.each<[string[], RegExp]>([
  [['people'], /no list "people" to export\. Choose one of these: persons, members\./],
  [['members'], /several types.* Name .* with --fields/],
  [['persons', '--resume'], /--resume continues a file\. Name it with --output/],
  [['persons', '--fields', 'id } other: allPersons { id'], /--fields .* written as in GraphQL/],
  [['persons', '--fields', '{id firstName}'], /--fields cannot be read.* without braces around/],
  [['persons', '--fields', 'id @skip(if: $x)'], /"\$x" is not defined.* Correct --fields/],
  [['persons', '--args', 'foo', '--fields', 'id'], /Syntax Error.* Correct --fields or --args/],
  [['persons { id }', '--fields', 'id'], /by its name only/],
  [['persons', '--args', 'first: 3'], /only one argument named "first"/],
  [['persons', '--fields', 'nobody'], /Cannot query field "nobody".* Correct --fields/],
  [['persons', '--output', '/no/such/folder/x'], /path of a file in a folder that exists/],
  [['persons', '--output', '-'], /--output takes the path of a file.*for the standard output/],
  [['persons', '--output', '/dev/null'], /which \/dev\/null is not/],
  [['persons', '--sandbox'], /Set one of the three/],
  [['persons', '--url', 'https://user:secret@gateway.example.com'], /without a user and password/],
  [['persons', '--url', 'localhost:4000'], /begins with http:/],
])('a mistake ends with 2 and a sentence: %j', async (args, sentence) => {
  const { code, stdout, stderr } = await runHere(['export', '--url', door.url, ...args]);
  expect({ code, stdout, stderr }).toEqual({
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(sentence),
  });
  expect(stderr).not.toMatch(/^\s+at |user:secret/m);
});

describe('with keys', () => {
  test('a key decides what is exported, from a production gateway with small windows too, and is never sent in clear text', async () => {
    const apiKeys = [entryFor('reader', 'ui', 'read')];
    await using closed = await startGatewayOverService(
      { persons: 1_000 },
      {
        config: { introspection: false, connectionMax: 100, auth: { apiKeys, jwt: undefined } },
        overrides: { fields: { 'Person.firstName': { scope: 'pii' } } },
      },
    );
    await using closedDoor = await listeningGateway(closed);
    const file = folder.file('keys.ndjson');
    const persons = (key: string | undefined, ...args: string[]) =>
      runHere(
        ['export', 'persons', ...args, '--url', `${closedDoor.url}/graphql/`],
        key === undefined ? {} : { EXPORT_API_KEY: key },
      );
    const to = ['--fields', 'key: id', '--output', file];
    for (const [key, args, code, sentence] of [
      [undefined, to, 2, /Set EXPORT_API_KEY/],
      ['wrong', to, 2, /Set EXPORT_API_KEY/],
      ['reader', ['--output', file], 2, /Name them with --fields/],
      ['reader', ['--fields', 'id firstName'], 2, /the scope "pii".* other fields with --fields/],
      ['reader', to, 0, /\n1,000 records/],
    ] as const) {
      const done = await persons(key, ...args);
      expect(done).toMatchObject({ code, stderr: expect.stringMatching(sentence) });
    }
    expect(readFileSync(file, 'utf8').match(/^\{"key":.*\}$/gm)).toHaveLength(1_000);
    const clear = await runHere(['export', 'persons', '--url', 'http://gateway.example.com'], {
      EXPORT_API_KEY: 'secret-key',
    });
    expect(clear).toMatchObject({ code: 2, stderr: expect.stringContaining('https://') });
    expect(clear.stderr).not.toContain('secret-key');
  });
});

describe('without a gateway', () => {
  test('the sandbox is exported, with a notice', async () => {
    const env = { SCHEMA_PREFIX: 'Recruiting', PAGES_PER_MINUTE: '1' };
    const file = folder.file('sandbox.csv');
    const args = ['export', 'recruitingPersons', '--sandbox', '--output', file];
    const { code, stderr } = await runHere(args, env);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(/SANDBOX[^]*137 records in \S+sandbox\.csv, in /),
    });
    expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(138);
  });

  test('the service of the settings is exported beside a gateway on the same token store', async () => {
    const service = await startService({ persons: 60, expiresIn: 1 });
    onTestFinished(() => service.close());
    const store = { TOKEN_STORE: `sqlite:${folder.file('tokens.db')}` };
    const env = { RECRUITING_URL: service.url, ...store, AUTH_API_KEYS: '' };
    const empty = await runHere(['export', 'persons'], env);
    expect(empty).toMatchObject({
      stdout: '',
      stderr: expect.stringMatching(/tokens import <link>/),
    });
    // The link is imported as by `serve`, and callers need no credential.
    const first = await runHere(['export', 'persons'], { ...env, TOKEN_LINK: service.tokenLink });
    expect(first).toMatchObject({ code: 0, stderr: expect.stringContaining('\n60 records, in ') });
    // Two exports at the same time, each of which needs a refresh: one exchange serves both, and no token is lost.
    const both = await Promise.all([1, 2].map(() => runHere(['export', 'persons'], env)));
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect((await runHere(['tokens', 'status'], env)).stdout).not.toMatch(/lost|uncertain/);
  });

  test.each<[string[], Record<string, string>, RegExp]>([
    [[], {}, /RECRUITING_URL.*--url.*--sandbox/],
    [['--sandbox'], { RECRUITING_ULR: 'https://x.example' }, /RECRUITING_ULR/],
    [['--sandbox'], { NODE_ENV: 'production' }, /RECRUITING_URL is not set/],
    [
      ['--sandbox'],
      { RECRUITING_URL: 'https://x.example', AUTH_API_KEYS: '' },
      /Set one of the three/,
    ],
    [['--sandbox'], { EXPORT_API_KEY: 'a-key' }, /EXPORT_API_KEY .* Add --url/],
  ])('made-up people are not exported by mistake: %j %j', async (options, env, sentence) => {
    const file = folder.file('mistake');
    const exit = await runHere(['export', 'persons', '--output', file, ...options], env);
    expect(exit).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(sentence) });
    expect(existsSync(file)).toBe(false);
  });
});

describe('progress', () => {
  test('a terminal shows the records that were written, and the rate', async () => {
    const args = ['export', 'members', '--fields', OF_MEMBERS, '--url', door.url];
    const { stderr } = await runHere(args, {}, [], { isTerminal: true });
    expect(stderr).toMatch(/\r\S*60 records {2}[\d,]+\/s/);
    expect(stderr).toMatch(/60 records, in .*\.\n$/);
  });

  test('a log gets a line after 10 seconds and then each minute, with the rate', () => {
    const clock = new ManualClock();
    let log = '';
    const stream = new Writable({
      write: (chunk, _encoding, done) => {
        log += String(chunk);
        done();
      },
    });
    const progress = exportProgress(stream, clock);
    for (let second = 1; second <= 100; second += 1) {
      clock.jump(SECOND);
      progress.show(1_000 + 500 * second, 1_000);
    }
    expect(log).toBe('6,000 records  500/s\n36,000 records  500/s\n');
    expect(progress.end()).toBe('1 min 40 s');
  });
});
