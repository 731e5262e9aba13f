/**
 * The README, from its first command about the real service to its recipes, against a service with all habits. Left out:
 * - `npm ci && npm start`, which starts the sandbox inside the gateway, and that one has no habits;
 * - `person(id: "…")`: this service has a `person` of its own, with ids that are numbers, and is asked for one of these.
 */
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { buildSchema, printSchema } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSandbox, type Sandbox } from '../../sandbox/sandbox.ts';
import { openSqliteStore } from '../../src/tokens/store/sqlite/sqlite-store.ts';
import { blocksOf, blockWith } from '../support/docs/documents.ts';
import { runInShell, runWithoutNpm } from '../support/docs/shell.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { startGateway } from '../support/gateway/gateway.ts';
import { listeningGateway } from '../support/gateway/listening-gateway.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { served, startProgram } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const schema = join(folder.path, 'results.graphql');
const store = join(folder.path, 'tokens.db');
let service: Sandbox;
/** By how much the clock of the service is ahead, ms. */
let ahead = 0;
let env: Record<string, string>;
beforeAll(async () => {
  service = await startSandbox({ allHabits: true, now: () => Date.now() + ahead });
  copyFileSync('schema/results.graphql', schema);
  env = { RECRUITING_URL: service.url, RECRUITING_SCHEMA: schema, TOKEN_STORE: `sqlite:${store}` };
});
afterAll(async () => {
  await service.close();
  folder[Symbol.dispose]();
});

test('the link is a page for people, so its JSON is imported from a file and from standard input', async () => {
  const commands = blockWith('README.md', 'export RECRUITING_URL')
    .replace('https://recruiting.example.com/…', service.tokenLink)
    .replaceAll('https://recruiting.example.com', service.url);
  const { calls } = await runWithoutNpm(commands, folder.path);
  const [newKey, importLink] = calls.map(({ args }) => args.slice(args.indexOf('--') + 1));
  expect(await runHere(newKey!, env)).toMatchObject({ code: 0 });

  const refused = await runHere(importLink!, env);
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toMatch(/page for people.*Open it in a browser.*tokens import <file>/s);

  const file = join(folder.path, 'saved.json');
  writeFileSync(file, await shownBy(service.tokenLink));
  expect(await runHere(['tokens', 'import', file], env)).toMatchObject({ code: 0 });
  const shown = await shownBy(service.makeNewSet());
  const again = await runHere(['tokens', 'import', '-', '--replace'], env, [shown]);
  expect(again).toMatchObject({ code: 0 });
});

test('after the import, the status says that the refusal of its refresh may have been too early', async () => {
  const { code, stdout } = await runHere(['tokens', 'status'], env);
  expect(code).toBe(1);
  expect(stdout).toMatch(/either it exchanges none before the access token has expired/);
});

test.each([
  [['tokens', 'check'], /accepts the access token/],
  [['schema', 'explain'], /Query\.persons/],
  [['schema', 'print'], /personsConnection/],
  [['schema', 'check'], /is that of the snapshot/],
])('%j succeeds', async (command, says) => {
  const { code, stdout, stderr } = await runHere(command, env);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(says);
});

test('schema pull replaces another snapshot with the schema of the service', async () => {
  copyFileSync('schema/upstream.graphql', schema);
  expect(await runHere(['schema', 'pull'], env)).toMatchObject({ code: 0 });
  const pulled = buildSchema(readFileSync(schema, 'utf8'));
  expect(printSchema(pulled)).toBe(
    printSchema(buildSchema(readFileSync('schema/results.graphql', 'utf8'))),
  );
});

test('the commands for a supergraph succeed', async () => {
  const { calls } = await runWithoutNpm(
    blockWith('README.md', 'schema print --subgraph'),
    folder.path,
  );
  const commands = calls.map(({ args }) => args.slice(args.indexOf('--') + 1));
  expect(commands).toHaveLength(2);
  for (const command of commands) {
    expect(await runHere(command, env)).toMatchObject({ code: 0, stderr: '' });
  }
});

test('the gateway is served to known callers, and answers the operations of the README', async () => {
  const { stdout } = await runHere(['keys', 'new', 'portal', '--scopes', 'read+drain'], env);
  const [key] = /rsk_\S+/.exec(stdout)!;
  const [AUTH_API_KEYS] = /portal:\S+/.exec(stdout)!;
  await using gateway = await served(
    startProgram([], { env: { ...env, AUTH_API_KEYS }, cwd: folder.path }),
  );
  const operations = blocksOf('README.md')
    .filter(({ language, text }) => language === 'graphql' && !text.includes('person(id: "'))
    .map(({ text }) => text);
  expect(operations).toHaveLength(2);
  const ask = (query: string) => askAt(gateway.url, query, { first: 3 }, { 'x-api-key': key });
  expect((await askAt(gateway.url, operations[0]!)).errors).toMatchObject([
    { extensions: { code: 'UNAUTHENTICATED' } },
  ]);
  const [all, connection] = [await ask(operations[0]!), await ask(operations[1]!)];
  expect(all).toMatchObject({ data: { allPersons: { length: 137 } } });
  const edge = { cursor: expect.any(String), node: { firstName: expect.any(String) } };
  expect(connection).toMatchObject({
    data: { personsConnection: { edges: [edge, edge, edge], pageInfo: { hasNextPage: true } } },
  });
  const inSentences = `{
    persons(first: 2) { items { id } pageInfo { hasNextPage endCursor } }
    person(id: 1) { ... on PersonItem { firstName } }
    personItem(id: 137) { firstName }
  }`;
  expect(await ask(inSentences)).toMatchObject({
    data: {
      persons: { items: [{}, {}] },
      person: { firstName: expect.any(String) },
      personItem: { firstName: expect.any(String) },
    },
  });
  await gateway.stop();
});

test('the recipes read the whole list', async () => {
  await using gateway = await startGateway(service, {
    store: openSqliteStore(store),
    snapshot: readFileSync(schema, 'utf8'),
  });
  await using door = await listeningGateway(gateway);
  const [exported, streamed, looped] = blockWith('README.md', '# One record a line')
    .replaceAll('localhost:4000', new URL(door.url).host)
    .trim()
    .split('\n\n') as [string, string, string];
  const ids = Array.from({ length: 137 }, (_, at) => String(at + 1));
  const inFolder = (command: string) =>
    runInShell(`export RECRUITING_SCHEMA=${resolve(schema)}\n${command}`, folder.path);
  expect(await inFolder(exported)).toContain('137 records');
  expect(existsSync(join(folder.path, 'persons.csv'))).toBe(true);
  expect(idsIn(await inFolder(streamed))).toEqual(ids);
  expect(idsIn(await inFolder(looped))).toEqual(ids);
});

test('once the access token has expired, the refresh succeeds, and the status is healthy', async () => {
  ahead = 86_400_000;
  expect(await runHere(['tokens', 'refresh'], env)).toMatchObject({ code: 0 });
  const { code, stdout } = await runHere(['tokens', 'status'], env);
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/healthy/) });
});

function idsIn(text: string): (string | undefined)[] {
  return [...text.matchAll(/"id":(\d+)/g)].map(([, id]) => id);
}

/** What a person copies from the page of a token link. */
async function shownBy(link: string): Promise<string> {
  const page = await (
    await fetch(link, { headers: { 'user-agent': 'browser/1 (person)' } })
  ).text();
  const [, json] = /<pre>([^]*)<\/pre>/.exec(page)!;
  return json!.replaceAll('&quot;', '"').replaceAll('&amp;', '&');
}
