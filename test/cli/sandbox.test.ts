import { expect, test } from 'vitest';
import { startHere } from '../support/gateway/run-here.ts';

test('the sandbox imitates the service with 137 people, prints how to serve it, and ends when it is stopped', async () => {
  const { sandbox, baseUrl, tokenLink } = await start();
  const { access_token } = await openLink(tokenLink);
  expect(await countPersons(baseUrl, access_token)).toBe(137);
  const { code, stdout, stderr } = await sandbox.stop();
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain(`RECRUITING_URL=${baseUrl} `);
  expect(stdout).toContain(`TOKEN_LINK=${tokenLink} `);
});

test('the sandbox accepts all of its options, and ends without waiting for a delayed answer', async () => {
  const { sandbox, baseUrl, tokenLink } = await start(
    ...'--port 0 --persons 7 --latency 120 --expires-in 90'.split(' '),
    ...'--cursors position --change-every 1'.split(' '),
  );
  const { access_token, expires_in } = await openLink(tokenLink);
  expect(expires_in).toBe(90);
  const before = await countPersons(baseUrl, access_token);
  expect(before).toBeGreaterThan(5);
  const recount = () => countPersons(baseUrl, access_token);
  await expect.poll(recount, { timeout: 10_000 }).not.toBe(before);
  expect(await sandbox.stop()).toMatchObject({ code: 0 });
  const slow = await start('--latency', '600000');
  const { access_token: token } = await openLink(slow.tokenLink);
  const outcome = countPersons(slow.baseUrl, token).catch(({ message }: Error) => message);
  // A later request is answered: the one before it has arrived.
  expect((await fetch(slow.tokenLink)).status).toBe(200);
  expect(await slow.sandbox.stop()).toMatchObject({ code: 0, stderr: '' });
  expect(await outcome).toBe('fetch failed');
});

async function start(...args: string[]) {
  const sandbox = startHere(['sandbox', ...args]);
  const [, baseUrl] = await sandbox.printed(/Base URL\s+(\S+)\n/);
  const [, tokenLink] = await sandbox.printed(/Token link\s+(\S+)\n/);
  return { sandbox, baseUrl: baseUrl!, tokenLink: tokenLink! };
}

async function openLink(link: string) {
  return (await (await fetch(link)).json()) as { access_token: string; expires_in: number };
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
