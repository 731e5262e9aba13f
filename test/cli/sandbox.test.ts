import { describe, expect, test } from 'vitest';
import { runHere } from '../support/gateway/run-here.ts';
import { runProgram, startSandboxProgram } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('the sandbox imitates the service with 137 people, prints how to serve it, and ends at SIGTERM', async () => {
  await using sandbox = await startSandboxProgram();
  const { access_token } = await openLink(sandbox.tokenLink);
  expect(await countPersons(sandbox.baseUrl, access_token)).toBe(137);
  expect(sandbox.stdout).toContain(`RECRUITING_URL=${sandbox.baseUrl} `);
  expect(sandbox.stdout).toContain(`TOKEN_LINK=${sandbox.tokenLink} `);
  sandbox.signal('SIGTERM');
  expect(await sandbox.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
});

test('the sandbox accepts all of its options', async () => {
  await using sandbox = await startSandboxProgram(
    '--port 0 --persons 7 --latency 120 --expires-in 90 --cursors position --change-every 1'.split(
      ' ',
    ),
  );
  const { access_token, expires_in } = await openLink(sandbox.tokenLink);
  expect(expires_in).toBe(90);
  const begun = performance.now();
  const before = await countPersons(sandbox.baseUrl, access_token);
  expect(performance.now() - begun).toBeGreaterThan(100);
  expect(before).toBeGreaterThan(6);
  await expect
    .poll(() => countPersons(sandbox.baseUrl, access_token), { timeout: 10_000 })
    .not.toBe(before);
  sandbox.signal('SIGINT');
  expect(await sandbox.ended).toMatchObject({ code: 0, signal: null });
});

test('SIGTERM ends the sandbox without waiting for a delayed answer', async () => {
  await using sandbox = await startSandboxProgram('--latency 600000'.split(' '));
  const { access_token } = await openLink(sandbox.tokenLink);
  const outcome = countPersons(sandbox.baseUrl, access_token).catch(
    ({ message }: Error) => message,
  );
  // A later request is answered: the one before it has arrived.
  expect((await fetch(sandbox.tokenLink)).status).toBe(200);
  sandbox.signal('SIGTERM');
  expect(await sandbox.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(await outcome).toBe('fetch failed');
});

test('the loss of the tokens can be rehearsed', async () => {
  using folder = temporaryFolder('disk');
  await using sandbox = await startSandboxProgram();
  const env = {
    RECRUITING_URL: sandbox.baseUrl,
    TOKEN_STORE: `sqlite:${folder.file('tokens.db')}`,
  };
  const tokens = (...args: string[]) => runHere(['tokens', ...args], env);
  const inAccount = async (action: string) =>
    (await fetch(`${sandbox.baseUrl}/account/${action}`, { method: 'POST' })).text();
  expect(await tokens('import', (await inAccount('tokens')).trim())).toMatchObject({ code: 0 });
  await inAccount('revoke');
  expect((await tokens('refresh')).code).not.toBe(0);
  const recovered = await tokens('recover');
  expect(recovered).toMatchObject({ code: 1 });
  expect(recovered.stderr).toContain('run `tokens import <link> --replace`');
  const link = (await inAccount('tokens')).trim();
  expect(await tokens('import', '--replace', link)).toMatchObject({ code: 0 });
  expect((await tokens('status')).stdout).toContain('healthy');
});

describe('a mistake in the command line', () => {
  test('the process ends with exit code 2', async () => {
    const { code, stderr } = await runProgram(['sandbox', '--persons', 'many']);
    expect(stderr).toMatch(/--persons.*many.*whole number from 0 to 10000000/);
    expect(code).toBe(2);
  });

  test.each([
    [['sandbox', '--port', '65536'], '--port'],
    [['sandbox', '--port', '80a'], '--port'],
    [['sandbox', '--persons', '-1'], '--persons'],
    [['sandbox', '--persons', '1.5'], '--persons'],
    [['sandbox', '--latency', ''], '--latency'],
    [['sandbox', '--expires-in', '0'], '--expires-in'],
    [['sandbox', '--change-every', '1s'], '--change-every'],
    [['sandbox', '--cursors', 'random'], 'keyset, record, position'],
    [['sandbox', '--cursors'], '--cursors'],
    [['sandbox', '--speed', '3'], '--speed'],
    [['sandbox', 'now'], 'now'],
    [['serv'], 'serv'],
    [['serve', '--port', '1'], '--port'],
    [['schema', 'show'], 'show'],
    [['schema'], 'print'],
  ])('%j ends with exit code 2, and names the mistake', async (args, said) => {
    const { code, stdout, stderr } = await runHere(args);
    expect(stderr).toContain(said);
    expect(stderr).not.toMatch(/^\s+at /m);
    expect(stdout).toBe('');
    expect(code).toBe(2);
  });
});

test.each([
  [['--help'], /sandbox[^]*schema/],
  [['sandbox', '--help'], /--change-every/],
  [['--version'], /^\d+\.\d+\.\d+\n$/],
])('%j prints to stdout, with exit code 0', async (args, said) => {
  expect(await runHere(args)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(said),
    stderr: '',
  });
});

async function openLink(link: string) {
  return (await (await fetch(link)).json()) as {
    access_token: string;
    expires_in: number;
  };
}

async function countPersons(baseUrl: string, token: string): Promise<number> {
  let count = 0;
  for (let after: string | null = null, more = true; more;) {
    const response = await fetch(`${baseUrl}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({
        query:
          'query ($after: String) { persons(after: $after) { items { id } pageInfo { hasNextPage endCursor } } }',
        variables: { after },
      }),
    });
    const { data } = (await response.json()) as { data: { persons: Page } };
    count += data.persons.items.length;
    after = data.persons.pageInfo.endCursor;
    more = data.persons.pageInfo.hasNextPage;
  }
  return count;
}

interface Page {
  items: unknown[];
  pageInfo: { hasNextPage: boolean; endCursor: string | null };
}
