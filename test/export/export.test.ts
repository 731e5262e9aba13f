/** What `export` writes, and what it says and returns. */
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { recordFormat } from '../../src/export/write.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { startFront, type Front } from '../support/gateway/front.ts';
import { rawJson } from '../additions/people.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { makeExecutableSchema, type PageArgs, pageOf } from '../service/lists.ts';
import { SECOND } from '../support/random/manual-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const SDL = `
  type Query {
    persons(first: Int, after: String, status: Status): PersonPage!
    members(first: Int, cursor: String, after: Int): Members!
    twins(first: Int, after: String): PersonPage!
    numbered(first: Int, after: String): NumberedPage!
  }
  enum Status { OPEN CLOSED }
  scalar Decimal
  type PersonPage { items: [Person!]! pageInfo: PageInfo! }
  type Person {
    id: ID! firstName: String salary: Decimal active: Boolean tags: [String] home: Home broken: String
  }
  type Home { city: String lines: [String] }
  type Members { items: [Member!]! pageInfo: PageInfo! }
  union Member = Worker | Team
  interface Numbered { id: Int! }
  type NumberedPage { items: [Numbered!]! pageInfo: PageInfo! }
  type Worker implements Numbered { id: Int! firstName: String rank: Int }
  type Team implements Numbered { id: Int! title: String rank: String }
  type PageInfo { hasNextPage: Boolean! endCursor: String }`;

const PEOPLE = [
  { id: '1', firstName: '=HYPERLINK("http://x")', salary: -5, active: false, tags: ['a', 'b'] },
  { id: '2', firstName: 'Ann, "A"\nB', salary: 12.5, home: { city: 'Bern', lines: ['x'] } },
  { id: '3', firstName: '-2+3', salary: rawJson('-12345678901234567891'), tags: [] },
  { id: '4', firstName: '@SUM(A1)', broken: 'yes' },
];
const MEMBERS = Array.from({ length: 60 }, (_, id) =>
  id % 2 === 0
    ? { __typename: 'Worker', id, firstName: `Name ${id}` }
    : { __typename: 'Team', id, title: `Title ${id}` },
);
const NUMBERED = ['Worker', 'Team'].flatMap((__typename) =>
  Array.from({ length: 600 }, (_, id) => ({ __typename, id })),
);
const ROWS = NUMBERED.map(({ __typename, id }) => `${__typename},${id}\n`);
const OF_MEMBERS = '__typename ... on Worker { id firstName } ... on Team { id title }';

let door: Front;
const folder = temporaryFolder('disk');
beforeAll(async () => {
  const schema = makeExecutableSchema(SDL, {
    Query: {
      persons: (_root: unknown, { status }: { status?: string }) => ({
        items: status === undefined ? PEOPLE : PEOPLE.slice(0, status === 'OPEN' ? 2 : 0),
        pageInfo: { hasNextPage: false, endCursor: 'x' },
      }),
      twins: () => ({
        items: [PEOPLE[0], PEOPLE[0], PEOPLE[1]],
        pageInfo: { hasNextPage: false, endCursor: 'x' },
      }),
      numbered: (_root: unknown, args: PageArgs) => pageOf(NUMBERED, args, 50),
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
  door = await startFront({ schema }, { snapshot: SDL });
});
afterAll(async () => {
  await door[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});
const run = (field: string, fields: string, options = '', env = {}) => {
  const args = ['export', field, '--fields', fields, ...options.split(' ').filter(Boolean)];
  return runHere(args.includes('--url') ? args : [...args, '--url', door.url], env);
};

const CSV = `id,firstName,salary,active,tags,home
1,"'=HYPERLINK(""http://x"")",-5,false,"[""a"",""b""]",
2,"Ann, ""A""\nB",12.5,,,"{""city"":""Bern"",""lines"":[""x""]}"
3,'-2+3,-12345678901234567891,,[],
4,'@SUM(A1),,,,
`;
const SALARIES = `{"salary":-5,"home":null}
{"salary":12.5,"home":{"city":"Bern"}}
{"salary":-12345678901234567891,"home":null}
`;
const lineOf = (record: object) => `${JSON.stringify(record)}\n`;
const IN_PARTS = MEMBERS.map(lineOf).join('');

test.each<[string, string, string, string]>([
  ['persons', 'id firstName salary active tags home { city lines }', '--format csv', CSV],
  ['persons', 'salary home { city }', '--limit 3', SALARIES],
  ['persons', 'id', '--args status:OPEN', '{"id":"1"}\n{"id":"2"}\n'],
  ['persons', 'id', '--args status:CLOSED --format csv', 'id\n'],
  ['persons', 'a: id ... on Person { b: id }', '--limit 1', '{"a":"1","b":"1"}\n'],
  ['persons', 'id', '--output - --limit 1', '{"id":"1"}\n'],
  ['members', OF_MEMBERS, '', IN_PARTS],
  ['members', OF_MEMBERS, '--limit 60', IN_PARTS],
  ['members', OF_MEMBERS, '--limit 41', MEMBERS.slice(0, 41).map(lineOf).join('')],
  // The list has ids twice, so they do not identify its records.
  ['twins', 'id', '', '{"id":"1"}\n{"id":"1"}\n{"id":"2"}\n'],
  // Records of two types have the same ids.
  ['numbered', 'kind: __typename id', '--format csv', `kind,id\n${ROWS.join('')}`],
  // The name of the file decides on the format.
  ['persons', 'id', '--output persons.CSV --limit 1', 'id\n1\n'],
  ['persons', 'id', '--output persons.jsonl --limit 1', '{"id":"1"}\n'],
  ['persons', 'id', '--output persons.txt --limit 1 --format csv', 'id\n1\n'],
  ['persons', 'id', '--output nobody.csv --args status:CLOSED', 'id\n'],
])('the export of %s with the fields %s and "%s"', async (field, fields, options, content) => {
  using others = temporaryFolder();
  const { code, stdout } = await run(
    field,
    fields,
    options.replace(/put (?=\w)/, `put ${others.path}/`),
  );
  const files = readdirSync(others.path).map((name) => readFileSync(others.file(name), 'utf8'));
  expect([code, stdout + files.join('')]).toEqual([0, content]);
});

test('text that a spreadsheet would run gets an apostrophe, an empty text is in quotes, and the rest stays as it is', () => {
  const cells: Record<string, unknown> = { null: null, empty: '', number: -5, 'a=b': 'a=b' };
  for (const sign of Array.from('=+-@\t\r')) cells[sign] = `${sign}1`;
  const { write } = recordFormat('csv', Object.keys(cells));
  expect(recordFormat('ndjson', []).write([null])).toBe('null\n');
  expect(write([cells])).toBe(`,"",-5,a=b,'=1,'+1,'-1,'@1,'\t1,"'\r1"\n`);
});

test('values that the service cannot give are null, and the exit code says so', async () => {
  const { code, stdout, stderr } = await run('persons', 'id broken');
  expect(code).toBe(3);
  expect(stdout.trimEnd().split('\n').at(-1)).toBe('{"id":"4","broken":null}');
  expect(stderr).toContain('null: 1, for example: The service cannot read this.');
});

test.each<[string, string, string, RegExp]>([
  ['person', 'id', '', /"personConnection".* Did you mean "personsConnection".* Correct the list/],
  ['persons { id }', 'id', '', /Cannot query field.* Correct the list/],
  ['persons', 'id } other: allPersons { id', '', /--fields .* written as in GraphQL/],
  ['persons', '{id firstName}', '', /--fields cannot be read.* without braces around/],
  ['persons', 'id } query { persons', '', /--fields cannot be read/],
  ['persons', 'id @skip(if: $x)', '', /"\$x" is not defined.* Correct the list/],
  ['persons', 'nobody', '', /Cannot query field "nobody".* Correct the list/],
  ['persons', 'id', '--args foo', /Syntax Error.* Correct the list, --fields or/],
  ['persons', 'id', '--args first:3', /only one argument named "first"/],
  [
    'persons',
    'id',
    '--output /no/such/folder/x',
    /ENOENT: no such file or directory.* give --output/,
  ],
  ['persons', 'id', '--resume', /--output/],
  ['persons', 'id', '--url localhost:4000', /begins with http:/],
  ['persons', 'id', '--url elsewhere', /begins with http:/],
])('a mistake ends with 2 and a sentence: %s %s %s', async (field, fields, options, sentence) => {
  const { code, stdout, stderr } = await run(field, fields, options);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(sentence);
  expect(stderr).not.toMatch(/^\s+at /m);
});

test('a key decides what is exported, from a production gateway with small windows too, and is never sent in clear text', async () => {
  const apiKeys = [entryFor('reader', 'ui', 'read')];
  await using closed = await startFront(
    { persons: 1_000 },
    {
      config: { introspection: false, connectionMax: 100, auth: { apiKeys, jwt: undefined } },
      overrides: { fields: { 'Person.firstName': { scope: 'pii' } } },
    },
  );
  const file = folder.file('keys.ndjson');
  const to = `--force --output ${file} --url ${closed.url}/graphql/`;
  for (const [EXPORT_API_KEY, fields, code, sentence] of [
    ['', 'key: id', 2, /Set EXPORT_API_KEY/],
    ['wrong', 'key: id', 2, /Set EXPORT_API_KEY/],
    ['reader', 'id firstName', 2, /the scope "pii"/],
    ['reader', 'key: id', 0, /\n1,000 records/],
  ] as const) {
    const done = await run('persons', fields, to, { EXPORT_API_KEY });
    expect(done).toMatchObject({ code, stderr: expect.stringMatching(sentence) });
  }
  expect(readFileSync(file, 'utf8').match(/^\{"key":.*\}$/gm)).toHaveLength(1_000);
  const plain = '--url http://gateway.example.com';
  const clear = await run('persons', 'id', plain, { EXPORT_API_KEY: 'secret-key' });
  expect(clear).toMatchObject({ code: 2, stderr: expect.stringContaining('https://') });
  expect(clear.stderr).not.toContain('secret-key');
});

test('a line each 10 seconds says how many records were written, and the last one how long it took', async () => {
  let passed = 0;
  const clock = { ...systemClock, elapsed: () => (passed += 4 * SECOND) };
  const args = ['export', 'numbered', '--fields', 'id', '--url', door.url];
  const { stderr } = await runHere(args, {}, { clock });
  expect(stderr).toMatch(
    /standard output\.\n500 records\n1,200 records\n1,200 records, in \d+ s\.\n$/,
  );
});
