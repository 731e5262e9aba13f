import { symlinkSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startService, type Service } from '../service/service.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { runHere, serveHere } from '../support/gateway/run-here.ts';
import { runProgram } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
let sandbox: Service;
beforeAll(async () => {
  sandbox = await startService();
});
afterAll(async () => {
  await sandbox.close();
  folder[Symbol.dispose]();
});

test('a configuration that cannot be loaded ends the start with one message and costs no token exchange', async () => {
  writeFileSync(folder.file('broken.ts'), "throw new Error('the reviews are down');");
  const GATEWAY_CONFIG = folder.file('broken.ts');
  const { code, stdout, stderr } = await runHere([], { ...service(), GATEWAY_CONFIG });
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(/^\S*broken\.ts cannot be loaded\.[^]*the reviews are down/);
  expect(sandbox.exchanges).toEqual([]);
  expect(sandbox.stats.refreshes).toBe(0);
});

test('a gateway answers an own field and shows it, and the log names the file once', async () => {
  const GATEWAY_CONFIG = folder.file('gateway.config.ts');
  writeFileSync(GATEWAY_CONFIG, OWN_FIELD);
  await using gateway = await serveHere({ GATEWAY_CONFIG });
  expect(await askAt(gateway.url, '{ persons(first: 1) { items { greeting } } }')).toMatchObject({
    data: { persons: { items: [{ greeting: expect.stringMatching(/^Dear \w/) }] } },
  });
  // As GraphiQL asks.
  expect(await askAt(gateway.url, '{ __type(name: "Person") { fields { name } } }')).toMatchObject({
    data: { __type: { fields: expect.arrayContaining([{ name: 'greeting' }]) } },
  });
  const { code, stdout, stderr } = await gateway.stop();
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const lines = stdout.split('\n').filter((line) => line.includes('configuration file'));
  expect(lines).toEqual([expect.stringContaining(`"file":"${GATEWAY_CONFIG}"`)]);
});

test('resources that the file leaves open do not keep a command running', async () => {
  const text = 'setInterval(() => {}, 60_000);\nexport default { plugins: [] };';
  writeFileSync(folder.file('behind-the-link.ts'), text);
  symlinkSync('behind-the-link.ts', folder.file('open.ts'));
  const options = { env: { GATEWAY_CONFIG: 'open.ts' }, cwd: folder.path };
  expect(await runProgram(['schema', 'print'], options)).toMatchObject({ code: 0, stderr: '' });
});

const OWN_FIELD = `
  export default {
    typeDefs: 'extend type Person { greeting: String! }',
    resolvers: {
      Person: {
        greeting: {
          selectionSet: '{ firstName }',
          resolve: ({ firstName }: { firstName: string }) => \`Dear \${firstName}\`,
        },
      },
    },
  };
`;

function service() {
  return {
    RECRUITING_URL: sandbox.url,
    RECRUITING_AGENT: 'tests/1.0 (tests@example.com)',
    TOKEN_LINK: sandbox.tokenLink,
    TOKEN_STORE: `sqlite:${folder.file('tokens.db')}`,
    ALLOW_ANONYMOUS: 'true',
  };
}
