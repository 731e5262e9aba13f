import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startService, type Service } from '../service/service.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { runHere, serveHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

describe('serve over a service', () => {
  let service: Service;
  let folder: ReturnType<typeof temporaryFolder>;
  let store: string;

  beforeAll(async () => {
    folder = temporaryFolder();
    store = `sqlite:${folder.file('tokens.db')}`;
    service = await startService({ persons: 60 });
  });
  afterAll(async () => {
    await service.close();
    folder[Symbol.dispose]();
  });

  test('the link is imported once, and later starts on the same store work with it and without it', async () => {
    const first = await begin({ TOKEN_STORE: store, TOKEN_LINK: service.tokenLink });
    await first.printed(/access token refreshed/);
    expect(await countPersons(first.url)).toBe(60);
    const { code, stdout } = await first.stop();
    expect(code).toBe(0);
    expect(stdout).not.toContain('SANDBOX');
    expect((await fetch(service.tokenLink)).status).not.toBe(200);

    for (const env of [{}, { TOKEN_LINK: service.tokenLink }]) {
      const later = await begin({ TOKEN_STORE: store, ...env });
      expect(await countPersons(later.url)).toBe(60);
      expect((await later.stop()).code).toBe(0);
    }

    // The store belongs to that service.
    const { code: refused, stderr } = await runHere([], {
      TOKEN_STORE: store,
      RECRUITING_URL: 'http://127.0.0.1:9',
      ALLOW_ANONYMOUS: 'true',
    });
    expect(refused).toBe(2);
    expect(stderr).toContain(`belongs to ${service.url}`);
    expect(stderr).toContain('The store was not changed.');
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  test.each([
    [
      'dead',
      () => `${service.url}/made-up-link-of-another-day`,
      /ERROR.*could not be refreshed or read[^]*is dead \(status 404\)/,
    ],
    [
      'foreign',
      () => `${service.url}/auth_check`,
      /ERROR.*could not be refreshed or read[^]*token link.*status 401/,
    ],
  ])(
    'with a %s link the gateway starts, reports what is wrong, and answers with a coded error',
    async (name, link, said) => {
      await using gateway = await begin({
        TOKEN_STORE: `sqlite:${folder.file(`${name}.db`)}`,
        TOKEN_LINK: link(),
      });
      await gateway.printed(said);
      const { errors } = await askAt(gateway.url, '{ allPersons { id } }');
      expect(errors).toMatchObject([{ extensions: { code: 'TOKENS_MISSING' } }]);
      expect((await fetch(new URL('/ready', gateway.url))).status).toBe(503);
      expect((await fetch(new URL('/health', gateway.url))).status).toBe(200);
      const { code, stdout } = await gateway.stop();
      expect(code).toBe(0);
      expect(stdout).not.toContain(link());
    },
  );

  const begin = (env: Record<string, string>) =>
    serveHere({ RECRUITING_URL: service.url, ALLOW_ANONYMOUS: 'true', ...env });
});

async function countPersons(url: string): Promise<number> {
  const { data, errors } = await askAt(url, '{ allPersons { id } }');
  expect(errors).toBeUndefined();
  return (data!['allPersons'] as unknown[]).length;
}
