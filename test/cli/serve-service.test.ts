import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { askAt } from '../support/gateway/ask-at.ts';
import { startProgram, startSandboxProgram, startServe } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

describe('serve over a service', () => {
  let service: Awaited<ReturnType<typeof startSandboxProgram>>;
  let folder: ReturnType<typeof temporaryFolder>;

  beforeAll(async () => {
    folder = temporaryFolder();
    service = await startSandboxProgram(['--persons', '60']);
  });
  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  test('the link is imported once, and later starts on the same store work with it and without it', async () => {
    const TOKEN_STORE = `sqlite:${folder.file('tokens.db')}`;
    const first = await begin({ TOKEN_STORE, TOKEN_LINK: service.tokenLink });
    await first.printed(/access token refreshed/);
    expect(await countPersons(first.url)).toBe(60);
    expect(first.stdout).not.toContain('SANDBOX');
    expect(await end(first)).toBe(0);
    expect((await fetch(service.tokenLink)).status).not.toBe(200);

    const without = await begin({ TOKEN_STORE });
    expect(await countPersons(without.url)).toBe(60);
    expect(await end(without)).toBe(0);

    const withDeadLink = await begin({ TOKEN_STORE, TOKEN_LINK: service.tokenLink });
    expect(await countPersons(withDeadLink.url)).toBe(60);
    expect(await end(withDeadLink)).toBe(0);
  });

  test.each([
    [
      'dead',
      () => `${service.baseUrl}/made-up-link-of-another-day`,
      /ERROR.*could not be refreshed or read[^]*is dead \(status 404\)/,
    ],
    [
      'foreign',
      () => `${service.baseUrl}/auth_check`,
      /ERROR.*could not be refreshed or read[^]*token link.*status 401/,
    ],
  ])(
    'with a %s link the gateway starts, reports what is wrong, and answers with a coded error',
    async (name, link, said) => {
      const gateway = await begin({
        TOKEN_STORE: `sqlite:${folder.file(`${name}.db`)}`,
        TOKEN_LINK: link(),
      });
      await gateway.printed(said);
      expect(gateway.stdout).not.toContain(link());
      const { errors } = await askAt(gateway.url, '{ allPersons { id } }');
      expect(errors).toMatchObject([{ extensions: { code: 'TOKENS_MISSING' } }]);
      expect((await fetch(new URL('/ready', gateway.url))).status).toBe(503);
      expect((await fetch(new URL('/health', gateway.url))).status).toBe(200);
      expect(await end(gateway)).toBe(0);
    },
  );

  test('a store that belongs to another service is refused', async () => {
    const TOKEN_STORE = `sqlite:${folder.file('tokens.db')}`;
    expect(existsSync(folder.file('tokens.db'))).toBe(true);
    await using gateway = startProgram([], {
      env: { TOKEN_STORE, RECRUITING_URL: 'http://127.0.0.1:9', ALLOW_ANONYMOUS: 'true' },
    });
    const { code, stderr } = await gateway.ended;
    expect(code).toBe(2);
    expect(stderr).toContain(`belongs to ${service.baseUrl}`);
    expect(stderr).toContain('The store was not changed.');
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  async function begin(env: Record<string, string>) {
    const gateway = await startServe({
      cwd: folder.path,
      env: { RECRUITING_URL: service.baseUrl, ALLOW_ANONYMOUS: 'true', ...env },
    });
    onTestFinished(() => gateway[Symbol.asyncDispose]());
    return gateway;
  }
});

async function countPersons(url: string): Promise<number> {
  const { data, errors } = await askAt(url, '{ allPersons { id } }');
  expect(errors).toBeUndefined();
  return (data!['allPersons'] as unknown[]).length;
}

async function end(gateway: Awaited<ReturnType<typeof startServe>>): Promise<number | null> {
  gateway.signal('SIGTERM');
  return (await gateway.ended).code;
}
