import { writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeAll(() => {
  folder = temporaryFolder();
});
afterAll(() => folder[Symbol.dispose]());

test.each([
  [['token', 'import', 'https://example.com/secret-link'], "unknown command 'token'"],
  [['tokens', 'export', 'postgres://user:secret@db/tokens', 'sqlite:x'], '<link> sqlite:x'],
  [['tokens', 'staus'], 'Did you mean status?'],
  [['tokens', 'import'], "missing required argument 'source'\nAdd --help to see the arguments"],
  [['sandbox', '--port', '65536'], '--port'],
  [['sandbox', '--cursors', 'random'], 'keyset, record, position'],
  [['serve', '--port', '1'], '--port'],
  [['schema'], 'print'],
])('%j ends with exit code 2, and names the mistake without a secret', async (args, named) => {
  const { code, stdout, stderr } = await runHere(args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(named);
  expect(stderr).not.toMatch(/^\s+at |secret/m);
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
  expect(stderr).not.toContain('Did you mean');
  const list = stderr.split('\nCommands:\n')[1]!;
  const listed = [...list.matchAll(/^ {2}([a-z]+)/gm)].map(([, name]) => name);
  expect(listed).toEqual(expect.arrayContaining(names));
});

test.each([
  [['--help'], /^Usage: npm start -- \[options\] \[command\]\n/],
  [['tokens', 'import', '--help'], /^Usage: npm start -- tokens import \[options\] <source>\n/],
  [['--version'], /^\d+\.\d+\.\d+(-rc\.\d+)?\n$/],
])('%j prints what is typed here, or the version', async (args, printed) => {
  const stdout = expect.stringMatching(printed) as string;
  expect(await runHere(args)).toEqual({ code: 0, stdout, stderr: '' });
});

const OVER_SERVICE = { RECRUITING_URL: 'http://127.0.0.1:9', ALLOW_ANONYMOUS: 'true' };

/** What cannot be used, with the settings that name it, and the exit code and the message of a start. */
test.each<[string, (file: (name: string) => string) => Record<string, string>, number, string]>([
  [
    'a host that is not an address of this machine',
    () => ({ HOST: '192.0.2.1' }),
    1,
    'this machine has no such address',
  ],
  [
    'a schema file that does not exist',
    (file) => ({ RECRUITING_SCHEMA: file('nowhere.graphql') }),
    2,
    'nowhere.graphql cannot be read (ENOENT)',
  ],
  [
    'an invalid schema',
    (file) => {
      writeFileSync(file('cut.graphql'), 'type Query {');
      return { RECRUITING_SCHEMA: file('cut.graphql') };
    },
    2,
    'cut.graphql, line 1',
  ],
  [
    'a token store in a folder that cannot be created',
    (file) => {
      writeFileSync(file('file'), 'text');
      return { ...OVER_SERVICE, TOKEN_STORE: `sqlite:${file('file/deeper/tokens.db')}` };
    },
    1,
    'ENOTDIR',
  ],
  [
    'a token store that is a text file',
    (file) => {
      writeFileSync(file('shopping.txt'), 'This is a shopping list, and no database.\n'.repeat(40));
      return { ...OVER_SERVICE, TOKEN_STORE: `sqlite:${file('shopping.txt')}` };
    },
    1,
    'file is not a database',
  ],
])('%s is reported in one sentence', async (_, env, code, said) => {
  const exit = await runHere([], env(folder.file), [], UNSTOPPED);
  expect(linesOf(exit)).toEqual([code, expect.stringContaining(said)]);
});

test('a port that is taken is named, by the gateway and by the sandbox', async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const PORT = String((taken.address() as AddressInfo).port);
  const gateway = await runHere([], { PORT }, [], UNSTOPPED);
  const sandbox = await runHere(['sandbox', '--port', PORT], {}, [], UNSTOPPED);
  await new Promise((resolve) => taken.close(resolve));
  const listens = `127.0.0.1:${PORT}: another process listens there`;
  expect(linesOf(gateway)).toEqual([1, expect.stringContaining(listens)]);
  expect(linesOf(sandbox)).toEqual([1, expect.stringContaining(PORT)]);
});

test('a gateway that cannot be reached is reported before an export tries again', async () => {
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
  const why = `The gateway at 127.0.0.1:${port} did not answer \\(\\w+\\)\\. Check that it is running, and the address in --url\\. Trying again in 1 s\\.`;
  expect(linesOf(exit)).toEqual([
    1,
    expect.stringMatching(new RegExp(`^${why}$`)),
    'The export was stopped.',
  ]);
});

const UNSTOPPED = { stop: new AbortController().signal };

/** The exit code and the lines of stderr: a message of one line, without a stack. */
function linesOf({ code, stderr }: { code: number; stderr: string }) {
  return [code, ...stderr.trimEnd().split('\n')];
}
