import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runHere } from '../support/gateway/run-here.ts';
import { runProgram } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { BOUND } from '../support/processes/bound-user.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeAll(() => {
  folder = temporaryFolder();
});
afterAll(() => folder[Symbol.dispose]());

test('an unknown command is reported without its arguments', async () => {
  const link = 'https://recruiting.example.com/secret-link';
  const { code, stderr } = await runHere(['token', 'import', link]);
  expect(code).toBe(2);
  expect(stderr).toMatch(/^error: unknown command 'token'.*--help/s);
  expect(stderr).not.toContain('secret-link');
});

test('a password in an argument too many is not repeated', async () => {
  const stores = ['postgres://user:secret,word@db/tokens', 'sqlite:x'];
  const { code, stderr } = await runHere(['tokens', 'export', ...stores]);
  expect(code).toBe(2);
  expect(stderr).toContain('<link> sqlite:x');
  expect(stderr).not.toContain('secret');
});

test.each([
  [['sandobx'], 'sandbox'],
  [['snadbox', '--persons', '3'], 'sandbox'],
  [['token', 'import', '-'], 'tokens'],
  [['key', 'new', 'portal'], 'keys'],
  [['tokens', 'staus'], 'status'],
])('a misspelled command is answered with the command that was meant: %j', async (args, meant) => {
  const { code, stdout, stderr } = await runHere(args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(new RegExp(`Did you mean ${meant}\\?`));
});

test.each([
  [['frobnicate'], ['serve', 'sandbox', 'export', 'tokens', 'keys', 'schema']],
  [
    ['tokens', 'frobnicate'],
    ['import', 'status', 'check', 'refresh', 'recover', 'export'],
  ],
])('an unknown command is answered with the list of commands: %j', async (args, names) => {
  const { code, stdout, stderr } = await runHere(args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(/^error: unknown command 'frobnicate'/);
  const list = stderr.split('\nCommands:\n')[1]!;
  const listed = [...list.matchAll(/^ {2}([a-z]+)/gm)].map(([, name]) => name);
  expect(listed).toEqual(expect.arrayContaining(names));
});

test.each([
  [['--help'], 'npm start -- [options] [command]'],
  [['tokens', '--help'], 'npm start -- tokens [options] [command]'],
  [['tokens', 'import', '--help'], 'npm start -- tokens import [options] <source>'],
  [['export', '--help'], 'npm start -- export [options] <field>'],
])('help says what is typed here: %j', async (args, usage) => {
  const { code, stdout } = await runHere(args);
  expect(code).toBe(0);
  expect(stdout.split('\n')[0]).toBe(`Usage: ${usage}`);
});

test('a command without its argument names the way to its help', async () => {
  const { code, stderr } = await runHere(['tokens', 'import']);
  expect(code).toBe(2);
  expect(stderr).toMatch(/missing required argument 'source'\nAdd --help to see the arguments/);
});

test('a word that resembles no command gets no suggestion', async () => {
  const { code, stderr } = await runHere(['deploy']);
  expect(code).toBe(2);
  expect(stderr).not.toContain('Did you mean');
});

test.each([
  [['sandbox', '--port', '65536'], '--port'],
  [['sandbox', '--persons', '1.5'], '--persons'],
  [['sandbox', '--latency', ''], '--latency'],
  [['sandbox', '--expires-in', '0'], '--expires-in'],
  [['sandbox', '--change-every', '1s'], '--change-every'],
  [['sandbox', '--cursors', 'random'], 'keyset, record, position'],
  [['sandbox', '--cursors'], '--cursors'],
  [['sandbox', '--speed', '3'], '--speed'],
  [['sandbox', 'now'], 'now'],
  [['serve', '--port', '1'], '--port'],
  [['schema', 'show'], 'show'],
  [['schema'], 'print'],
])('%j ends with exit code 2, and names the mistake', async (args, named) => {
  const { code, stdout, stderr } = await runHere(args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(named);
  expect(stderr).not.toMatch(/^\s+at /m);
});

test('--version prints the version', async () => {
  const version = { code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/), stderr: '' };
  expect(await runHere(['--version'])).toEqual(version);
});

describe('something that cannot be used is reported in one sentence', () => {
  const OVER_SERVICE = { RECRUITING_URL: 'http://127.0.0.1:9', ALLOW_ANONYMOUS: 'true' };

  test('a port that is taken', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const { port } = taken.address() as AddressInfo;
    const PORT = String(port);
    const gateway = await run({ PORT });
    const sandbox = await runHere(['sandbox', '--port', PORT], {}, [], UNSTOPPED);
    await new Promise((resolve) => taken.close(resolve));
    expect(said(gateway)).toEqual([
      1,
      expect.stringContaining(`127.0.0.1:${PORT}: another process listens there`),
    ]);
    expect(said(sandbox)).toEqual([1, expect.stringContaining(PORT)]);
  });

  test('a host that is not an address of this machine', async () => {
    expect(said(await run({ HOST: '192.0.2.1' }))).toEqual([
      1,
      expect.stringContaining('this machine has no such address'),
    ]);
  });

  test('a schema file that does not exist', async () => {
    const env = { RECRUITING_SCHEMA: folder.file('nowhere.graphql') };
    expect(said(await run(env))).toEqual([2, expect.stringContaining('nowhere.graphql: ENOENT')]);
    expect(said(await runHere(['schema', 'print'], env))).toEqual([
      2,
      expect.stringContaining('nowhere.graphql: ENOENT'),
    ]);
  });

  test.each([
    ['cut.graphql', 'type Query {', 'cut.graphql, line 1'],
    ['no-query.graphql', 'type Person { id: ID! }', 'Query root type must be provided'],
    ['empty.graphql', '', 'empty.graphql'],
    ['unknown-type.graphql', 'type Query { a: Nothing }', 'Unknown type "Nothing"'],
  ])('an invalid schema: %s', async (name, sdl, reason) => {
    writeFileSync(folder.file(name), sdl);
    const exit = await runHere([], { RECRUITING_SCHEMA: folder.file(name), ...OVER_SERVICE });
    expect(said(exit)).toEqual([2, expect.stringContaining(reason)]);
    expect(readFileSync(folder.file(name), 'utf8')).toBe(sdl);
  });

  test('a token store that is a text file, which is not changed', async () => {
    const text = 'This is a shopping list, and no database.\n'.repeat(40);
    mkdirSync(folder.file('lists'));
    writeFileSync(folder.file('lists/shopping.txt'), text);
    const TOKEN_STORE = `sqlite:${folder.file('lists/shopping.txt')}`;
    const exit = await run({ ...OVER_SERVICE, TOKEN_STORE });
    expect(said(exit)).toEqual([1, expect.stringContaining('file is not a database')]);
    expect(exit.stderr).toContain('TOKEN_STORE');
    expect(readFileSync(folder.file('lists/shopping.txt'), 'utf8')).toBe(text);
    expect(readdirSync(folder.file('lists'))).toEqual(['shopping.txt']);
  });

  test('a token store in a folder that cannot be created', async () => {
    writeFileSync(folder.file('file'), 'text');
    const TOKEN_STORE = `sqlite:${folder.file('file/deeper/tokens.db')}`;
    expect(said(await runHere([], { ...OVER_SERVICE, TOKEN_STORE }))).toEqual([
      1,
      expect.stringContaining('ENOTDIR'),
    ]);
    expect(readFileSync(folder.file('file'), 'utf8')).toBe('text');
  });

  test('a token store in a folder that this user may not read', async () => {
    mkdirSync(folder.file('locked'));
    chmodSync(folder.file('locked'), 0);
    const env = { TOKEN_STORE: `sqlite:${folder.file('locked/tokens.db')}` };
    const exit = await runProgram(['tokens', 'status'], { env, user: BOUND });
    const why =
      /cannot be used .* may not be accessed by this user\. Check TOKEN_STORE and the disk, and that the user of the gateway/;
    expect(said(exit)).toEqual([1, expect.stringMatching(why)]);
  });

  test('a gateway that cannot be reached, before an export tries again', async () => {
    const stopping = new AbortController();
    let attempts = 0;
    const broken = createServer((socket) => {
      socket.destroy();
      attempts += 1;
      if (attempts === 2) stopping.abort();
    });
    await new Promise<void>((resolve) => broken.listen(0, '127.0.0.1', resolve));
    const { port } = broken.address() as AddressInfo;
    const args = ['export', 'persons', '--url', `http://127.0.0.1:${port}`];
    const exit = await runHere(args, {}, [], { stop: stopping.signal });
    await new Promise((resolve) => broken.close(resolve));
    const why = `The gateway at 127.0.0.1:${port} cannot be reached \\(\\w+\\)\\. Check that it is running, and the address in --url\\. Trying again in 1 s\\.`;
    expect(said(exit)).toEqual([
      1,
      expect.stringMatching(new RegExp(`^${why}$`)),
      'The export was stopped.',
    ]);
  });

  test('a token store that is a folder', async () => {
    const TOKEN_STORE = `sqlite:${folder.path}`;
    const exit = await runHere([], { ...OVER_SERVICE, TOKEN_STORE });
    expect(said(exit)).toEqual([1, expect.stringContaining('it is a folder')]);
  });
});

const UNSTOPPED = { stop: new AbortController().signal };

function run(env: Record<string, string>) {
  return runHere([], env, [], UNSTOPPED);
}

/** The exit code and the lines of stderr: a message of one line, without a stack. */
function said({ code, stderr }: { code: number | null; stderr: string }) {
  return [code, ...stderr.trimEnd().split('\n')];
}
