import { describe, expect, test, vi } from 'vitest';
import { runHere } from '../support/gateway/run-here.ts';
import { runProgram, startSandboxProgram } from '../support/processes/process.ts';

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
    '--port 0 --persons 7 --latency 120 --expires-in 90 --cursors position --revoke-on-refresh'.split(
      ' ',
    ),
  );
  const { access_token, refresh_token, expires_in } = await openLink(sandbox.tokenLink);
  expect(expires_in).toBe(90);
  const begun = performance.now();
  expect(await countPersons(sandbox.baseUrl, access_token)).toBe(7);
  expect(performance.now() - begun).toBeGreaterThan(100);

  const refreshed = await refreshAt(sandbox.baseUrl, refresh_token);
  expect(refreshed.status).toBe(200);
  const check = await fetch(`${sandbox.baseUrl}/auth_check`, {
    headers: { authorization: `Bearer ${access_token}` },
  });
  expect(check.status).toBe(401);
  sandbox.signal('SIGINT');
  expect(await sandbox.ended).toMatchObject({ code: 0, signal: null });
});

test('refreshes are cut off before and after they are processed, as often as the options say', async () => {
  await using sandbox = await startSandboxProgram('--drop-every 2 --drop-after-every 5'.split(' '));
  let { refresh_token } = await openLink(sandbox.tokenLink);
  const seen: (number | 'cut')[] = [];
  while (seen.length < 7) {
    const answer = await refreshAt(sandbox.baseUrl, refresh_token).catch(() => undefined);
    seen.push(answer?.status ?? 'cut');
    if (answer?.ok) ({ refresh_token } = (await answer.json()) as { refresh_token: string });
  }
  // The second and the fourth spent nothing; the fifth spent the token, so that nothing is left to exchange.
  expect(seen).toEqual([200, 'cut', 200, 'cut', 'cut', 'cut', 400]);
});

test('refreshes are answered with the latency and the lifetimes of the options', async () => {
  await using sandbox = await startSandboxProgram(
    '--token-latency 120 --refresh-expires-in 600'.split(' '),
  );
  const { refresh_token } = await openLink(sandbox.tokenLink);
  const begun = performance.now();
  const answer = await refreshAt(sandbox.baseUrl, refresh_token);
  expect(performance.now() - begun).toBeGreaterThan(100);
  expect(await answer.json()).toMatchObject({ refresh_token_expires_in: 600 });
});

test('SIGTERM ends the sandbox without waiting for a delayed answer', async () => {
  await using sandbox = await startSandboxProgram('--token-latency 600000'.split(' '));
  const { refresh_token } = await openLink(sandbox.tokenLink);
  const answer = refreshAt(sandbox.baseUrl, refresh_token);
  const outcome = answer.catch((error: Error) => error.message);
  // The link stops working with the refresh, whose answer has not arrived yet.
  await vi.waitFor(async () => expect((await fetch(sandbox.tokenLink)).status).toBe(404));
  sandbox.signal('SIGTERM');
  expect(await sandbox.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(await outcome).toBe('fetch failed');
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
    [['sandbox', '--refresh-expires-in', '0'], '--refresh-expires-in'],
    [['sandbox', '--token-latency', '1s'], '--token-latency'],
    [['sandbox', '--drop-every', '0'], '--drop-every'],
    [['sandbox', '--drop-after-every', 'third'], '--drop-after-every'],
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
  [['sandbox', '--help'], /--revoke-on-refresh/],
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
    refresh_token: string;
    expires_in: number;
  };
}

function refreshAt(baseUrl: string, refreshToken: string): Promise<Response> {
  return fetch(`${baseUrl}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refreshToken }),
  });
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
