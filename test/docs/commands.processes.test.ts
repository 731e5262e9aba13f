import { expect, test } from 'vitest';
import { variables } from '../../src/config.ts';
import { startService } from '../service/service.ts';
import { blocksOf, blockWith } from '../support/docs/documents.ts';
import { runWithoutNpm, type NpmCall } from '../support/docs/shell.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { startFront } from '../support/gateway/front.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { runHere, serveHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('the first command of the README starts the sandbox, and prints the address of GraphiQL', async () => {
  using folder = temporaryFolder();
  const { calls } = await runWithoutNpm(blocksOf('README.md')[0]!.text, folder.path);
  expect(calls.map(({ args }) => args)).toEqual([['ci'], ['start']]);
  const { code, stdout } = await run({ args: calls[1]!.args, env: {} });
  expect(code).toBe(0);
  expect(stdout).toMatch(/SANDBOX[^]*GraphiQL +http:\/\/127\.0\.0\.1:\d+\/graphql/);
});

test('the commands of the README lead from a token link to a gateway that serves known callers', async () => {
  using folder = temporaryFolder();
  const service = await startService();
  const commands = blockWith('README.md', 'export RECRUITING_URL')
    .replace('https://recruiting.example.com/…', service.tokenLink)
    .replaceAll('https://recruiting.example.com', service.url);
  const { calls } = await runWithoutNpm(commands, folder.path);
  const [newKey, importLink, serve] = inFolder(calls, folder.path);
  const made = await run(newKey!);
  const [key] = /rsk_\S+/.exec(made.stdout)!;
  const [entry] = /portal:\S+/.exec(made.stdout)!;
  const imported = await run(importLink!);
  expect(imported.stdout).toMatch(/Refreshed at once/);

  const { AUTH_API_KEYS, RECRUITING_URL, TOKEN_STORE } = serve!.env;
  expect(AUTH_API_KEYS).toBe('portal:…');
  const env = { AUTH_API_KEYS: entry, RECRUITING_URL: RECRUITING_URL!, TOKEN_STORE: TOKEN_STORE! };
  await using gateway = await serveHere(env);
  const [header] = blockWith('docs/clients.md', 'x-api-key: rsk_…').split('\n');
  const [name, value] = header!.replace('rsk_…', key).split(': ') as [string, string];
  const ask = '{ allPersons(limit: 200) { id } }';
  expect((await askAt(gateway.url, ask)).errors![0]!.extensions['code']).toBe('UNAUTHENTICATED');
  const { data } = await askAt(gateway.url, ask, {}, { [name]: value });
  expect(data!['allPersons']).toHaveLength(137);
  await gateway.stop();
  await service.close();
});

test('the other commands of the documentation end without an error, and its requests are answered', async () => {
  await using documented = await startDocumented();
  for (const [document, content] of OF_THE_GATEWAY) {
    const { calls } = await documented.run(blockWith(document, content));
    expect(calls.length).toBeGreaterThan(0);
    for (const call of calls) {
      const { code, stderr } = await run(call);
      expect({ document, call, code, stderr }).toMatchObject({ code: 0 });
    }
  }
  for (const content of ['curl -G', 'documentId']) {
    const { stdout } = await documented.run(blockWith('docs/clients.md', content));
    expect(JSON.parse(stdout)).toEqual({ data: expect.anything() });
  }
  const stream = await documented.run(blockWith('docs/clients.md', 'curl -N'));
  expect(stream.stdout).toMatch(/"items":\[\{"id":.*\}\][^]*"hasNext":false\}/);
});

const OF_THE_GATEWAY = [
  ['README.md', '--subgraph > recruiting.graphql'],
  ['README.md', 'persons.csv'],
  ['docs/callers.md', 'keys new importer'],
  ['docs/export.md', '> persons.csv'],
  ['docs/export.md', 'EXPORT_API_KEY=rsk'],
  ['docs/supergraph.md', 'keys new router'],
] as const;

test('the operations of the README are answered with records', async () => {
  await using gateway = await startGatewayOverService();
  const answers: unknown[] = [];
  for (const { language, text } of blocksOf('README.md'))
    if (language === 'graphql') answers.push(await gateway.ask(text, { first: 3 }));
  const edge = { cursor: expect.any(String), node: { firstName: expect.any(String) } };
  const pageInfo = { hasNextPage: true, endCursor: expect.any(String) };
  expect(answers).toMatchObject([
    { data: { allPersons: { length: 137 } } },
    { data: { personsConnection: { edges: [edge, edge, edge], pageInfo } } },
    { data: { person: { firstName: expect.any(String) } } },
  ]);
});

/** The service, the gateway and the keys that the commands of the documentation need. */
async function startDocumented() {
  const folder = temporaryFolder();
  const abc = 'query ($first: Int) { persons(first: $first) { items { id } } }';
  const front = await startFront({}, { trustedDocuments: { abc } });
  const { stdout } = await runHere(['keys', 'new', 'router', '--scopes', 'read+drain+router']);
  const values: [string | RegExp, string][] = [
    ['RECRUITING_URL=https://recruiting.example.com', `RECRUITING_URL=${front.service.url}`],
    [/https?:\/\/(localhost:4000|recruiting\.(internal|example\.com))/g, front.url],
    ['router:…', /router:\S+/.exec(stdout)![0]],
    ['rsk_…', 'rsk_made-up'],
    ['$KEY', 'rsk_made-up'],
    ['<id>', 'abc'],
    ['--output ', `--output ${folder.path}/`],
  ];
  return {
    run: async (commands: string) => {
      const filled = values.reduce((text, [name, value]) => text.replaceAll(name, value), commands);
      const { calls, stdout: printed } = await runWithoutNpm(filled, folder.path);
      return { calls: inFolder(calls, folder.path), stdout: printed };
    },
    [Symbol.asyncDispose]: async () => {
      await front[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

/** The calls with their settings, and the tokens of a service in this folder. */
function inFolder(calls: readonly NpmCall[], folder: string): NpmCall[] {
  return calls.map(({ args, env }) => ({
    args,
    env: {
      ...('RECRUITING_URL' in env && { TOKEN_STORE: `sqlite:${folder}/tokens.db` }),
      ...Object.fromEntries(Object.entries(env).filter(([name]) => name in variables.entries)),
    },
  }));
}

/** Runs a command of the gateway. A command that would serve stops at once. */
function run({ args, env }: NpmCall) {
  const words = args.filter((word) => word !== '-s');
  expect(words[0] === 'run' ? words[1] : words[0]).toBe('start');
  const from = words.indexOf('--');
  return runHere(from < 0 ? [] : words.slice(from + 1), env);
}
