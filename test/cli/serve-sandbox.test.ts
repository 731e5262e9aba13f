import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { askAt } from '../support/gateway/ask-at.ts';
import { startServe } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

describe('serve without RECRUITING_URL', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let gateway: Awaited<ReturnType<typeof startServe>>;

  beforeAll(async () => {
    folder = temporaryFolder();
    gateway = await startServe({ cwd: folder.path, unbundled: true });
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  test('the output says that this is the sandbox, and where GraphiQL is', () => {
    expect(gateway.stdout).toContain('***  SANDBOX  ***');
    expect(gateway.stdout).toContain('made up');
    expect(gateway.stdout).toMatch(/GraphiQL\s+http:\/\/127\.0\.0\.1:\d+\/graphql\n/);
  });

  test('allPersons returns the whole list', async () => {
    const { data, errors } = await askAt(gateway.url, '{ allPersons { id firstName } }');
    expect(errors).toBeUndefined();
    const persons = data!['allPersons'] as { id: string; firstName: string }[];
    expect(persons).toHaveLength(137);
    expect(new Set(persons.map(({ id }) => id)).size).toBe(137);
    expect(persons.every(({ firstName }) => firstName.length > 0)).toBe(true);
  });

  test('each tab of GraphiQL is answered with records', async () => {
    const page = await (await fetch(gateway.url, { headers: { accept: 'text/html' } })).text();
    const [, settings] = /^ +\.\.\.(\{"title".*\}),$/m.exec(page)!;
    const { defaultTabs } = JSON.parse(settings!) as { defaultTabs: Tab[] };
    expect(defaultTabs).toHaveLength(5);
    for (const { query, variables } of defaultTabs) {
      const values = JSON.parse(variables ?? '{}') as Record<string, unknown>;
      const { data, errors } = await askAt(gateway.url, query, values);
      expect(errors).toBeUndefined();
      expect(JSON.stringify(data)).toMatch(/"firstName":"\p{L}/u);
    }
  });

  test('the gateway is alive and ready at the addresses that it prints', async () => {
    const [, health, ready] = await gateway.printed(/Health\s+(\S+)\s+(\S+)/);
    await gateway.printed(/The token link was imported/);
    expect((await fetch(health!)).status).toBe(200);
    expect((await fetch(ready!)).status).toBe(200);
  });

  test('the log is for people: it has no JSON lines', async () => {
    const [line] = await gateway.printed(/^.*INFO.*request.*$/m);
    expect(line).toMatch(
      /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: request \{"requestId":"[\w-]+","method":"POST"/,
    );
    expect(gateway.stdout).not.toMatch(/^\{/m);
  });

  test('at SIGTERM the process ends with exit code 0, and has written nothing to disk', async () => {
    gateway.signal('SIGTERM');
    expect(await gateway.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(readdirSync(folder.path)).toEqual([]);
  });
});

interface Tab {
  query: string;
  variables: string | null;
}
