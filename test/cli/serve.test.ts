import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startService, type Service } from '../service/service.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { runHere, serveHere, startHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
let service: Service;
beforeAll(async () => {
  service = await startService({ persons: 60 });
});
afterAll(async () => {
  await service.close();
  folder[Symbol.dispose]();
});

const overService = (env: Record<string, string>) => ({
  RECRUITING_URL: service.url,
  ALLOW_ANONYMOUS: 'true',
  ...env,
});

async function countPersons(url: string): Promise<number> {
  const { data, errors } = await askAt(url, '{ allPersons { id } }');
  expect(errors).toBeUndefined();
  return (data!['allPersons'] as unknown[]).length;
}

describe('without RECRUITING_URL', () => {
  test('the sandbox is served, said loudly, with a log for people', async () => {
    await using gateway = await serveHere();
    const [, health, ready] = await gateway.printed(/Health\s+(\S+)\s+(\S+)/);
    await gateway.printed(/The token link was imported/);
    expect([(await fetch(health!)).status, (await fetch(ready!)).status]).toEqual([200, 200]);
    expect(await countPersons(gateway.url)).toBe(137);
    const { stdout, ...exit } = await gateway.stop();
    expect(exit).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(
      /\*{3} {2}SANDBOX {2}\*{3}[^]*made up[^]*GraphiQL\s+http:\S+\/graphql\n/,
    );
    expect(stdout).toMatch(
      /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: request \{"requestId":"[\w-]+","method"/m,
    );
    expect(stdout).not.toMatch(/^\{/m);
  });

  test('with LOG_LEVEL=silent only the address is printed', async () => {
    await using gateway = await serveHere({ LOG_LEVEL: 'silent', GRAPHIQL: 'off' });
    await askAt(gateway.url, '{ __typename }');
    const { stdout } = await gateway.stop();
    expect(stdout).toMatch(/GraphQL\s+http/);
    expect(stdout).not.toMatch(/INFO|request/);
  });
});

test('asked to stop, /ready fails at once, and requests are answered for SHUTDOWN_DELAY_MS', async () => {
  await using gateway = await serveHere({ SHUTDOWN_DELAY_MS: '600000' });
  await gateway.printed(/The token link was imported/);
  const stopped = gateway.stop();
  await gateway.printed(/requests are still accepted for a while/);
  expect((await fetch(new URL('/ready', gateway.url))).status).toBe(503);
  expect(await countPersons(gateway.url)).toBe(137);
  gateway.hurry();
  expect(await stopped).toMatchObject({ code: 0, stderr: '' });
});

describe('over a service', () => {
  test('the link is imported once, and later starts on the same store work with it and without it', async () => {
    const TOKEN_STORE = `sqlite:${folder.file('tokens.db')}`;
    const TOKEN_LINK = service.tokenLink;
    for (const env of [{ TOKEN_LINK }, {}, { TOKEN_LINK }]) {
      await using gateway = await serveHere(overService({ TOKEN_STORE, ...env }));
      expect(await countPersons(gateway.url)).toBe(60);
      const { code, stdout } = await gateway.stop();
      expect(code).toBe(0);
      expect(stdout).not.toContain('SANDBOX');
      expect((await fetch(TOKEN_LINK)).status).not.toBe(200);
    }
    // The store belongs to that service.
    const RECRUITING_URL = 'http://127.0.0.1:9';
    const { code, stderr } = await runHere([], overService({ TOKEN_STORE, RECRUITING_URL }));
    expect(code).toBe(2);
    expect(stderr).toContain(`belongs to ${service.url}`);
    expect(stderr).toContain('The store was not changed.');
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  test('with a dead link the gateway starts, reports what is wrong, and answers with a coded error', async () => {
    const TOKEN_LINK = `${service.url}/made-up-link-of-another-day`;
    const TOKEN_STORE = `sqlite:${folder.file('dead.db')}`;
    await using gateway = await serveHere(overService({ TOKEN_STORE, TOKEN_LINK }));
    await gateway.printed(/is dead \(status 404\)/);
    const { errors } = await askAt(gateway.url, '{ allPersons { id } }');
    expect(errors).toMatchObject([{ extensions: { code: 'TOKENS_MISSING' } }]);
    expect((await fetch(new URL('/ready', gateway.url))).status).toBe(503);
    expect((await fetch(new URL('/health', gateway.url))).status).toBe(200);
    const { code, stdout } = await gateway.stop();
    expect(code).toBe(0);
    expect(stdout).toMatch(/ERROR.*could not be refreshed or read/);
    expect(stdout).not.toContain(TOKEN_LINK);
  });

  test('a store whose key is missing or another ends the start with exit code 2, so that nothing restarts it', async () => {
    const [KEY, OTHER] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64'));
    const env = overService({ TOKEN_STORE: `sqlite:${folder.file('sealed.db')}` });
    const args = ['tokens', 'import', service.makeNewSet()];
    expect(await runHere(args, { ...env, TOKEN_STORE_KEY: KEY! })).toMatchObject({ code: 0 });
    for (const settings of [env, { ...env, TOKEN_STORE_KEY: OTHER! }]) {
      const { code, stderr } = await runHere([], settings);
      expect(code).toBe(2);
      expect(stderr).toMatch(/cannot be used .* Set TOKEN_STORE_KEY as it is set for the gateway/);
    }
  });

  test('in production the log is JSON from its first line on, with one line for each request and no secret', async () => {
    const link = service.makeNewSet();
    const set = (await (await fetch(link)).json()) as Record<string, string>;
    const env = overService({
      NODE_ENV: 'production',
      RECRUITING_AGENT: 'example-inc',
      TOKEN_LINK: link,
      TOKEN_STORE: `sqlite:${folder.file('logged.db')}`,
      LOG_LEVEL: 'debug',
    });
    await using gateway = await serveHere(env);
    await gateway.printed(/access token refreshed/);
    const post = { method: 'POST', headers: { 'content-type': 'application/json' } };
    const get = { headers: { 'apollo-require-preflight': 'true' } };
    const operation = `query OperationOfSomebody($after: String) {
      aliasOfSomebody: persons(after: $after) { items { id } }
    }`;
    await askAt(
      gateway.url,
      operation,
      { after: 'cursorOfSomebody' },
      { authorization: 'Bearer tokenOfSomebody' },
    );
    await fetch(`${gateway.url}?query={queryOfSomebody}`, get);
    await fetch(`${gateway.url}?query={__typename}&variables=queryOfSomebody`, get);
    await fetch(gateway.url, { ...post, body: '{"query": "queryOfSomebody' });
    await fetch(new URL('/ready', gateway.url));
    await fetch(new URL('/elsewhere', gateway.url));
    await gateway.printed(/"status":404/);

    const { stdout, stderr, code } = await gateway.stop();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const secret of ['OfSomebody', set['access_token']!, set['refresh_token']!, link]) {
      expect(stdout).not.toContain(secret);
    }
    expect(stdout).toContain('RECRUITING_AGENT has no contact');
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toContainEqual(
      expect.objectContaining({ msg: 'serving', url: gateway.url, upstream: service.url }),
    );
    const statuses = lines
      .filter(({ method }) => method !== undefined)
      .map((line) => line['status']);
    expect(statuses).toEqual([200, 200, 400, 400, 200, 404]);
  });
});

test('`sandbox` imitates the service, prints how to serve it, and ends when it is stopped', async () => {
  const options = '--port 0 --persons 7 --latency 1 --expires-in 90 --cursors position';
  await using sandbox = startHere(['sandbox', ...options.split(' ')]);
  const [, baseUrl] = await sandbox.printed(/Base URL\s+(\S+)\n/);
  const [, tokenLink] = await sandbox.printed(/Token link\s+(\S+)\n/);
  const set = (await (await fetch(tokenLink!)).json()) as Record<string, unknown>;
  expect(set['expires_in']).toBe(90);
  const { data } = await askAt(
    `${baseUrl}/graphql`,
    '{ persons { items { id } pageInfo { hasNextPage } } }',
    {},
    { authorization: `Bearer ${String(set['access_token'])}` },
  );
  expect(data).toMatchObject({
    persons: { items: { length: 7 }, pageInfo: { hasNextPage: false } },
  });
  const { code, stdout, stderr } = await sandbox.stop();
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain(`RECRUITING_URL=${baseUrl} `);
  expect(stdout).toContain(`TOKEN_LINK=${tokenLink} `);
});
