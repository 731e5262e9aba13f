import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { entryFor } from '../support/gateway/api-key.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { documentedSdl } from '../support/documented-sdl.ts';
import { makeExecutableSchema } from '../support/imitations/honest.ts';
import { listeningGateway, type ListeningGateway } from '../support/gateway/listening-gateway.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { startSandboxProgram } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeAll(() => {
  folder = temporaryFolder('disk');
});
afterAll(() => folder[Symbol.dispose]());

/** A path where no file is yet. */
let files = 0;
const newFile = (ending = 'ndjson') => folder.file(`${(files += 1)}.${ending}`);

describe('through a running gateway', () => {
  let gateway: TestGateway & {
    sandbox: { persons: { all(): { id: string; firstName: string }[] } };
  };
  let door: ListeningGateway;
  let lines: string[];
  beforeAll(async () => {
    gateway = await startGatewayOverSandbox();
    door = await listeningGateway(gateway);
    lines = gateway.sandbox.persons
      .all()
      .map(({ id, firstName }) => JSON.stringify({ id, firstName }));
  });
  afterAll(async () => {
    await door[Symbol.asyncDispose]();
    await gateway[Symbol.asyncDispose]();
  });
  const run = (...args: string[]) => runHere(['export', ...args, '--url', door.url]);

  test.each(['persons', 'allPersons'])(
    'export %s writes every record once and in order, with all plain fields',
    async (field) => {
      const { code, stdout, stderr } = await run(field);
      expect({ code, stderr }).toEqual({
        code: 0,
        stderr: expect.stringMatching(
          /^Exporting allPersons from http:\S+\/graphql to the standard output\.\n137 records\. Read \d pages in .*\.\n$/,
        ),
      });
      expect(stdout.trimEnd().split('\n')).toEqual(lines);
    },
  );

  test('--fields selects as GraphQL does, and --output leaves nothing but the whole file', async () => {
    const file = newFile();
    const fields = 'name: firstName ... on Person { __typename }';
    const { code, stdout, stderr } = await run('persons', '--fields', fields, '--output', file);
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining(`\n137 records in ${file}. Read `),
    });
    const [first] = gateway.sandbox.persons.all();
    expect(JSON.parse(readFileSync(file, 'utf8').split('\n')[0]!)).toEqual({
      name: first!.firstName,
      __typename: 'Person',
    });
    expect(readdirSync(folder.path).filter((name) => file.endsWith(name.slice(0, 8)))).toHaveLength(
      1,
    );
  });

  test('a file that exists is replaced only with --force, and --resume finds it whole', async () => {
    const file = newFile();
    writeFileSync(file, 'precious\n');
    const refused = await run('persons', '--output', file);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('--force') });
    const resumed = await run('persons', '--output', file, '--resume');
    expect(resumed).toMatchObject({ code: 0, stderr: expect.stringContaining('whole already') });
    expect(readFileSync(file, 'utf8')).toBe('precious\n');
    expect((await run('persons', '--output', file, '--force')).code).toBe(0);
    expect(readFileSync(file, 'utf8').trimEnd().split('\n')).toEqual(lines);
  });

  test('what an interrupted export left is neither replaced nor mixed with another export', async () => {
    const file = newFile('data');
    const stopping = new AbortController();
    let cut: ServerResponse | undefined;
    door.onPiece = (piece, response) => {
      // The second attempt.
      if (cut && response !== cut) stopping.abort();
      // After the schema, the first payload and a page.
      if (piece !== 6) return;
      cut = response;
      response.socket!.destroy();
    };
    onTestFinished(() => void (door.onPiece = () => {}));
    const stopped = await runHere(
      ['export', 'persons', '--output', file, '--url', door.url],
      {},
      [],
      { stop: stopping.signal },
    );
    expect(stopped.code).toBe(1);
    expect(stopped.stderr).toContain('Trying again in 1 s.');
    expect(stopped.stderr).toMatch(/stopped\. \d+ records were written to .*\.part\. .* --resume/);
    expect(existsSync(file)).toBe(false);
    expect(await run('persons', '--output', file)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/was interrupted\. Continue it with --resume/),
    });
    const ofSandbox = await runHere([
      'export',
      'persons',
      '--sandbox',
      '--output',
      file,
      '--resume',
    ]);
    expect(ofSandbox.stderr).toMatch(/was begun from http.*, and this one is from the sandbox/);
    expect((await run('persons', '--output', file, '--resume')).code).toBe(0);
    expect(readFileSync(file, 'utf8').trimEnd().split('\n')).toEqual(lines);
  });

  test.each<[string[], number, RegExp]>([
    [['people'], 2, /no list "people" to export\. Choose one of these: allPersons\./],
    [['persons', '--resume'], 2, /--resume continues a file\. Name it with --output/],
    [['persons', '--fields', 'id }'], 2, /written as in GraphQL/],
    [['persons', '--fields', '...Name'], 2, /named fragments/],
    [
      ['persons', '--fields', 'id } other: allPersons { id'],
      2,
      /--fields .* written as in GraphQL/,
    ],
    [
      ['persons', '--fields', '{id firstName}'],
      2,
      /--fields has braces around all fields\. Remove/,
    ],
    [['persons', '--fields', ''], 2, /--fields cannot be read: it is empty/],
    [['persons', '--fields', 'id {'], 2, /--fields cannot be read at its end/],
    [['persons', '--fields', 'id ] firstName'], 2, /--fields cannot be read at "\] firstName"/],
    [['persons', '--fields', 'id @skip(if: $x)'], 2, /--fields .* variables such as \$x/],
    [['persons', '--args', 'foo', '--fields', 'id'], 2, /--args cannot be read at its end/],
    [['persons { id }', '--fields', 'id'], 2, /by its name only/],
    [['persons', '--args', 'limit: 3', '--fields', 'id'], 2, /Remove limit/],
    [['persons', '--fields', 'nobody'], 2, /Cannot query field "nobody".* Correct --fields/],
    [
      ['persons', '--args', 'city: "Bern"'],
      2,
      /Unknown argument "city".* Correct --fields or --args/,
    ],
    [['persons', '--limit', '0'], 2, /--limit/],
    [['persons', '--format', 'xlsx'], 2, /Allowed choices are ndjson, csv/],
    [['persons', '--output', '/no/such/folder/x'], 2, /There is no folder \/no\/such\/folder/],
    [['persons', '--output', '-'], 2, /--output takes the path of a file.*for the standard output/],
    [['persons', '--output', '/tmp/no-such-folder/'], 2, /--output takes the path of a file/],
    [['persons', '--output', '/dev/null/x'], 2, /There is no folder \/dev\/null/],
    [['persons', '--output', '/dev/null'], 2, /\/dev\/null is a device\. Give the path of a file/],
    [['persons', '--output', '/tmp'], 2, /\/tmp is a folder\. Give the path of a file/],
    [['persons', '--output', '/tmp/x.csv.gz'], 2, /does not end with \.gz, and compress/],
    [['persons', '--output', '/tmp/x.csv', '--format', 'ndjson'], 2, /contradicts .* \.csv/],
  ])('a mistake is reported in a sentence: %j', async (args, code, sentence) => {
    const result = await run(...args);
    expect(result).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(sentence) });
    expect(result.stderr).not.toMatch(/^\s+at /m);
  });

  test('a terminal shows records, rate, and the share done of a list that was read before', async () => {
    const { stderr } = await runHere(['export', 'persons', '--url', door.url], {}, [], {
      isTerminal: true,
    });
    expect(stderr).toMatch(/\r\S*\d+ records {2}\d+ pages? {2}[\d,]+\/s {2}\[#+\.*\] \d+ %/);
    expect(stderr).toMatch(/137 records\. Read \d pages in .*\.\n$/);
  });
});

describe('through a gateway in production, with keys', () => {
  let gateway: TestGateway;
  let door: ListeningGateway;
  beforeAll(async () => {
    const apiKeys = [
      entryFor('drainer', 'data', 'read', 'drain'),
      entryFor('reader', 'ui', 'read'),
    ];
    gateway = await startGatewayOverSandbox(
      { persons: 1_000 },
      {
        config: {
          introspection: false,
          drainMaxItems: 700,
          auth: { apiKeys, jwt: undefined },
        },
      },
    );
    door = await listeningGateway(gateway);
  });
  afterAll(async () => {
    await door[Symbol.asyncDispose]();
    await gateway[Symbol.asyncDispose]();
  });
  const run = (env: Record<string, string>, ...args: string[]) =>
    runHere(['export', 'persons', ...args, '--url', `${door.url}/graphql/`], env);

  test('the key of EXPORT_API_KEY is sent, and more records than DRAIN_MAX_ITEMS are exported', async () => {
    writeFileSync(folder.file('key'), 'drainer\n');
    const env = { EXPORT_API_KEY_FILE: folder.file('key') };
    const { code, stdout } = await run(env, '--fields', 'firstName');
    expect(code).toBe(0);
    expect(stdout.match(/^\{"firstName":.*\}$/gm)).toHaveLength(1_000);
  });

  test('without introspection, --fields has to be given', async () => {
    expect(await run({ EXPORT_API_KEY: 'drainer' })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Name them with --fields'),
    });
  });

  test('a missing key, a wrong one, and one without the scope drain end with 2 and what to do', async () => {
    for (const env of [{}, { EXPORT_API_KEY: 'wrong' }] as Record<string, string>[]) {
      expect(await run(env, '--fields', 'id')).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('Set EXPORT_API_KEY'),
      });
    }
    const file = newFile();
    const reader = await run({ EXPORT_API_KEY: 'reader' }, '--fields', 'id', '--output', file);
    expect(reader).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('lacks the scope drain'),
    });
  });

  test('an export that ended because its key lacks the scope drain is continued with another key', async () => {
    const apiKeys = [
      entryFor('drainer', 'data', 'read', 'drain'),
      entryFor('reader', 'ui', 'read'),
    ];
    const auth = { apiKeys, jwt: undefined };
    await using unread = await startGatewayOverSandbox({ persons: 1_000 }, { config: { auth } });
    await using doorOfUnread = await listeningGateway(unread);
    const file = newFile();
    const exportWith = (key: string, ...args: string[]) =>
      runHere(['export', 'persons', '--output', file, '--url', doorOfUnread.url, ...args], {
        EXPORT_API_KEY: key,
      });
    const reader = await exportWith('reader');
    expect(reader).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /EXPORT_API_KEY lacks the scope drain\. .*--scopes read\+drain.* \d+ records were written .*--resume/,
      ),
    });
    expect(reader.stderr).not.toMatch(/resumeAfter|fewer records/);
    expect((await exportWith('drainer', '--resume')).code).toBe(0);
    expect(new Set(readFileSync(file, 'utf8').trimEnd().split('\n')).size).toBe(1_000);
  });
});

test('https to a port without TLS is a mistake, and ends at once', async () => {
  await using gateway = await startGatewayOverSandbox();
  await using door = await listeningGateway(gateway);
  const url = door.url.replace('http:', 'https:');
  const { code, stderr } = await runHere(['export', 'persons', '--url', url]);
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: expect.stringMatching(/cannot be reached \(\w+\)\. .* without TLS has http:\/\//),
  });
  expect(stderr).not.toContain('Trying again');
});

test('a key is never sent in clear text to another machine', async () => {
  const args = ['export', 'persons', '--url', 'http://gateway.example.com'];
  const { code, stderr } = await runHere(args, { EXPORT_API_KEY: 'secret-key' });
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('https://') });
  expect(stderr).not.toContain('secret-key');
});

test.each([
  ['https://user:secret@gateway.example.com', /without a user and password/],
  ['gateway', /begins with http:/],
  ['localhost:4000', /begins with http:/],
  ['user:secret@gateway.example.com', /begins with http:/],
  ['ftp://gateway', /begins with http:/],
])('the address %s of a gateway is refused', async (url, why) => {
  const { code, stderr } = await runHere(['export', 'persons', '--url', url]);
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(why) });
  expect(stderr).not.toContain('secret');
});

describe('formats', () => {
  const sdl = `${documentedSdl
    .replace('after: String\n', 'after: String\n status: Status\n')
    .replace(
      'firstName: String',
      'firstName: String salary: Decimal active: Boolean tags: [String] home: Home broken: String ' +
        'greeting(to: String!): String',
    )}
    enum Status { OPEN CLOSED }
    scalar Decimal
    type Home { city: String lines: [String] }`;
  const people = [
    { id: '1', firstName: '=HYPERLINK("http://x")', salary: -5, active: false, tags: ['a', 'b'] },
    {
      id: '2',
      firstName: 'Ann, "A"\nB',
      salary: 12.5,
      active: true,
      home: { city: 'Bern', lines: ['x'] },
    },
    { id: '3', firstName: '-2+3', salary: 12_345_678_901_234_567_000, tags: [] },
    { id: '4', firstName: '@SUM(A1)', broken: 'yes' },
  ];
  let door: ListeningGateway;
  let gateway: TestGateway;
  beforeAll(async () => {
    const schema = makeExecutableSchema(sdl, {
      Query: {
        persons: (_root: unknown, { status }: { status?: string }) => ({
          items: status === 'OPEN' ? people.slice(0, 2) : people,
          pageInfo: { first: 50, hasNextPage: false, endCursor: 'x' },
        }),
      },
      Person: {
        broken: ({ broken }: { broken?: string }) => {
          if (broken) throw new Error('The service cannot read this.');
          return 'fine';
        },
      },
    });
    gateway = await startGatewayOverSandbox({ schema }, { snapshot: sdl });
    door = await listeningGateway(gateway);
  });
  afterAll(async () => {
    await door[Symbol.asyncDispose]();
    await gateway[Symbol.asyncDispose]();
  });

  test('CSV has a column for each field; formulas are harmless, and nested values are JSON', async () => {
    const fields = 'id firstName salary active tags home { city lines }';
    const args = ['export', 'persons', '--format', 'csv', '--fields', fields, '--url', door.url];
    const { code, stdout } = await runHere(args);
    expect(code).toBe(0);
    expect(stdout).toBe(`id,firstName,salary,active,tags,home
1,"'=HYPERLINK(""http://x"")",-5,false,"[""a"",""b""]",
2,"Ann, ""A""\nB",12.5,true,,"{""city"":""Bern"",""lines"":[""x""]}"
3,'-2+3,12345678901234567000,,[],
4,'@SUM(A1),,,,
`);
  });

  test.each([
    ['persons.csv', [], 'id\n1\n'],
    ['persons.CSV', [], 'id\n1\n'],
    ['persons.csv', ['--format', 'csv'], 'id\n1\n'],
    ['persons.jsonl', [], '{"id":"1"}\n'],
    ['persons.txt', [], '{"id":"1"}\n'],
    ['persons.txt', ['--format', 'csv'], 'id\n1\n'],
  ])('the name %s with the options %j decides on the format', async (name, options, content) => {
    using others = temporaryFolder();
    const args = ['--fields', 'id', '--limit', '1', '--output', others.file(name), ...options];
    expect(await runHere(['export', 'persons', ...args, '--url', door.url])).toMatchObject({
      code: 0,
    });
    expect(readFileSync(others.file(name), 'utf8')).toBe(content);
  });

  test('--args filters as GraphQL does', async () => {
    const args = ['export', 'persons', '--args', 'status: OPEN', '--fields', 'id'];
    const { code, stdout } = await runHere([...args, '--url', door.url]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: '{"id":"1"}\n{"id":"2"}\n' });
  });

  test('an enum value in quotes is answered with how to write it', async () => {
    const args = ['export', 'persons', '--args', 'status: "OPEN"', '--fields', 'id'];
    const { code, stderr } = await runHere([...args, '--url', door.url]);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining('Write OPEN without quotes'),
    });
  });

  test('without --fields, every field is exported that needs neither a selection nor an argument', async () => {
    const { stdout } = await runHere(['export', 'persons', '--format', 'csv', '--url', door.url]);
    expect(stdout.split('\n')[0]).toBe('id,firstName,salary,active,tags,broken');
  });

  test('NDJSON has the values as the service wrote them', async () => {
    const args = ['export', 'persons', '--fields', 'salary home { city }', '--url', door.url];
    const { stdout } = await runHere(args);
    expect(stdout.split('\n').slice(0, 3)).toEqual([
      '{"salary":-5,"home":null}',
      '{"salary":12.5,"home":{"city":"Bern"}}',
      '{"salary":12345678901234567000,"home":null}',
    ]);
  });

  test('values that the service cannot give are null, and the exit code says so', async () => {
    const args = ['export', 'persons', '--fields', 'id broken', '--url', door.url];
    const { code, stdout, stderr } = await runHere(args);
    expect(code).toBe(3);
    expect(stdout.trimEnd().split('\n').at(-1)).toBe('{"id":"4","broken":null}');
    expect(stderr).toContain(
      '1 value could not be read, and is null: The service cannot read this.',
    );
  });
});

describe('without a gateway', () => {
  test('npm with --prefix writes into the folder where it was called', async () => {
    using others = temporaryFolder();
    const npm = { npm_package_json: resolve('package.json'), INIT_CWD: others.path };
    const args = ['export', 'persons', '--sandbox', '--output', 'persons.csv'];
    const { code, stderr } = await runHere(args, npm);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringContaining(`137 records in ${others.file('persons.csv')}.`),
    });
    expect(readdirSync(others.path)).toEqual(['persons.csv']);
    // A script of another package runs this program in its own folder.
    const other = { ...npm, npm_package_json: others.file('package.json') };
    const elsewhere = ['export', 'persons', '--sandbox', '--output', 'no-such-folder/x.csv'];
    expect(await runHere(elsewhere, other)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('There is no folder no-such-folder.'),
    });
  });

  test('the sandbox is exported, with a notice, also where a prefix names its fields', async () => {
    const { code, stdout, stderr } = await runHere(['export', 'persons', '--sandbox']);
    expect(code).toBe(0);
    expect(stdout.trimEnd().split('\n')).toHaveLength(137);
    expect(stderr).toMatch(/SANDBOX[^]*137 records\. Read/);
    const env = { SCHEMA_PREFIX: 'Recruiting', INTROSPECTION: 'off', PAGES_PER_MINUTE: '1' };
    const prefixed = await runHere(['export', 'recruitingPersons', '--sandbox'], env);
    expect(prefixed).toMatchObject({ code: 0, stdout });
  });

  test('an empty list is a file with a header', async () => {
    await using gateway = await startGatewayOverSandbox({ persons: 0 });
    await using door = await listeningGateway(gateway);
    const file = newFile('csv');
    const args = ['export', 'persons', '--format', 'csv', '--output', file, '--url', door.url];
    expect((await runHere(args)).code).toBe(0);
    expect(readFileSync(file, 'utf8')).toBe('id,firstName\n');
  });

  test('the service of the settings is exported beside a gateway on the same token store', async () => {
    await using service = await startSandboxProgram(['--persons', '60', '--expires-in', '1']);
    const store = { TOKEN_STORE: `sqlite:${folder.file('tokens.db')}` };
    const env = { RECRUITING_URL: service.baseUrl, ...store, AUTH_API_KEYS: '' };
    // The link is imported as by `serve`, and callers need no credential.
    const first = await runHere(['export', 'persons'], { ...env, TOKEN_LINK: service.tokenLink });
    expect(first).toMatchObject({ code: 0, stderr: expect.stringContaining('\n60 records.') });
    // Two exports at the same time, each of which needs a refresh: one exchange serves both, and no token is lost.
    const both = await Promise.all([1, 2].map(() => runHere(['export', 'persons'], env)));
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    const status = await runHere(['tokens', 'status'], env);
    expect(status.stdout).not.toMatch(/lost|uncertain/);
    expect((await runHere(['export', 'persons'], env)).code).toBe(0);
  });

  test('without tokens the operator who exports gets the message for operators', async () => {
    await using service = await startSandboxProgram(['--persons', '1']);
    const store = { TOKEN_STORE: `sqlite:${folder.file('empty.db')}` };
    const env = { RECRUITING_URL: service.baseUrl, ...store };
    expect(await runHere(['export', 'persons'], env)).toMatchObject({
      code: expect.any(Number),
      stdout: '',
      stderr: expect.stringMatching(/token store is empty.*tokens import <link>/),
    });
  });

  test('the requests of an export are logged as on a server: when the list was read to its end, with all pages', async () => {
    const { code, stderr } = await runHere(['export', 'persons', '--sandbox'], {
      LOG_LEVEL: 'info',
    });
    expect(code).toBe(0);
    const lines = stderr.split('\n').filter((line) => line.includes('INFO: request {'));
    const stream = JSON.parse(/\{.*/.exec(lines.at(-1)!)![0]) as Record<string, unknown>;
    expect(stream).toMatchObject({ status: 200, operationType: 'query', pages: 3 });
    expect(stream).not.toHaveProperty('code');
  });

  test.each<[string, string[], Record<string, string>, RegExp]>([
    ['without an address', [], {}, /RECRUITING_URL is not set.*--url.*--sandbox/],
    [
      'with a misspelled setting',
      ['--sandbox'],
      { RECRUITING_ULR: 'https://x.example' },
      /RECRUITING_ULR/,
    ],
    ['in production', ['--sandbox'], { NODE_ENV: 'production' }, /RECRUITING_URL is not set/],
    [
      'beside a service',
      ['--sandbox'],
      { RECRUITING_URL: 'https://x.example', AUTH_API_KEYS: '' },
      /--sandbox .*RECRUITING_URL is set/,
    ],
    ['beside a gateway', ['--sandbox', '--url', 'http://localhost:1'], {}, /remove --url/],
    ['with the key of a gateway', [], { EXPORT_API_KEY: 'a-key' }, /EXPORT_API_KEY .* Add --url/],
    [
      'with the key of a gateway, and --sandbox',
      ['--sandbox'],
      { EXPORT_API_KEY: 'a-key' },
      /EXPORT_API_KEY .* Add --url/,
    ],
  ])('made-up people are not exported by mistake: %s', async (_, options, env, sentence) => {
    const file = newFile();
    const exit = await runHere(['export', 'persons', '--output', file, ...options], env);
    expect(exit).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(sentence) });
    expect(existsSync(file)).toBe(false);
  });
});
