import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { blocksOf } from '../support/docs/documents.ts';
import { runInShell } from '../support/docs/shell.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { startGateway, startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { served, startProgram } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const DOCUMENT = readFileSync('docs/sandbox.md', 'utf8');

test('docs/sandbox.md explains every option of the sandbox, and no other', async () => {
  const { stdout } = await runHere(['sandbox', '--help']);
  const options = [...stdout.matchAll(/^ {2}(--[a-z-]+)/gm)].map(([, name]) => name!);
  const rows = DOCUMENT.split('\n').filter((line) => line.startsWith('| `--'));
  const documented = rows.flatMap((row) =>
    [...row.split('|')[1]!.matchAll(/`(--[a-z-]+)`/g)].map(([, name]) => name!),
  );
  expect(documented.toSorted()).toEqual(options.toSorted());
});

test('the operations of docs/sandbox.md are answered over the rich sandbox', async () => {
  await using gateway = await startGatewayOverSandbox(
    { rich: true },
    { snapshot: readFileSync('schema/rich.graphql', 'utf8'), config: { mutations: 'all' } },
  );
  const operations = blocks('graphql').slice(0, 3);
  const answers = [];
  for (const operation of operations) {
    const { data, errors } = await gateway.ask(operation);
    expect(errors).toBeUndefined();
    answers.push(data);
  }
  expect(answers).toMatchObject([
    {
      vacanciesConnection: {
        totalCount: 39,
        edges: [{ node: { candidatesConnection: { totalCount: 24, nodes: [{}, {}] } } }, {}, {}],
      },
    },
    { vacancy: { allCandidates: Array.from({ length: 120 }, () => ({})) } },
    { moveCandidate: { stage: 'OFFER' } },
  ]);
  // A refusal of the service arrives as its own error.
  const { errors } = await gateway.ask('mutation { moveCandidate(id: "0", stage: NEW) { id } }');
  expect(errors).toMatchObject([{ message: 'There is no candidate with the id "0".' }]);
});

test('the sandbox with results is started and answers as documented', async () => {
  using folder = temporaryFolder();
  await using sandbox = startProgram(argumentsOf(blocks('sh').at(-1)!.trim()), {
    cwd: folder.path,
  });
  const [, url = ''] = await sandbox.printed(/Base URL\s+(\S+)/);
  const [, tokenLink = ''] = await sandbox.printed(/Token link\s+(\S+)/);
  await using gateway = await startGateway(
    { url, tokenLink },
    { snapshot: readFileSync('schema/results.graphql', 'utf8') },
  );
  const [results, all, ...others] = blocks('graphql').slice(3);
  expect(others).toEqual([]);
  expect((await gateway.ask(results!)).data).toEqual({
    found: { __typename: 'PersonItem', firstName: expect.any(String) },
    missing: {
      __typename: 'PersonError',
      errorType: 'NOT_FOUND',
      message: 'There is no person with the id 138.',
    },
    hidden: {
      __typename: 'PersonError',
      errorType: 'FORBIDDEN',
      message: 'This person belongs to another company.',
    },
  });
  const { data, errors } = await gateway.ask<{ allPersons: { id: number }[] }>(all!);
  expect(errors).toBeUndefined();
  expect(data.allPersons.map(({ id }) => id)).toEqual(
    Array.from({ length: 137 }, (_, at) => at + 1),
  );
  // Full pages were refused: three would have been enough.
  const [, pages] = /^recruiting_pages_read_total (\d+)$/m.exec(
    await gateway.gateway.metrics.text(),
  )!;
  expect(Number(pages)).toBeGreaterThan(3);
});

test('the sandbox with keys prints settings that serve it, with what each key may do', async () => {
  using folder = temporaryFolder();
  const [start] = blocks('sh')[0]!.trim().split('\n');
  await using sandbox = startProgram(argumentsOf(start!), { cwd: folder.path });
  await sandbox.printed(/account\/revoke/);
  const [, settings = ''] = /Serve it: ([^]*?) npm start/.exec(sandbox.stdout)!;
  const env = Object.fromEntries(
    settings
      .split(/[\s\\]+/)
      .filter(Boolean)
      .map((setting) => /^(\w+)=(.*)$/s.exec(setting)!.slice(1)),
  ) as Record<string, string>;
  const [reader, admin] = [...sandbox.stdout.matchAll(/rsk_\S+/g)].map(([key]) => key);
  const RECRUITING_SCHEMA = resolve(env['RECRUITING_SCHEMA']!);
  await using gateway = await served(
    startProgram([], { cwd: folder.path, env: { ...env, RECRUITING_SCHEMA } }),
  );
  const ask = (query: string, key = '') => askAt(gateway.url, query, {}, { 'x-api-key': key });
  const codesOf = async (query: string, key?: string) =>
    (await ask(query, key)).errors?.map(({ extensions }) => extensions?.['code']);

  expect(await codesOf('{ __typename }')).toEqual(['UNAUTHENTICATED']);
  const asMatterOfCourse = `{
    personsConnection(first: 2) { totalCount nodes { id } }
    last: personsConnection(last: 3) { nodes { id } }
    person(id: "nobody") { id }
  }`;
  expect(await ask(asMatterOfCourse, reader)).toMatchObject({
    data: { personsConnection: { totalCount: 2_345 }, last: { nodes: [{}, {}, {}] }, person: null },
  });
  const move = 'mutation { moveCandidate(id: "1", stage: OFFER) { stage } }';
  expect(await codesOf('{ allPersons { id } }', reader)).toEqual(['FORBIDDEN']);
  expect(await codesOf(move, reader)).toEqual(['FORBIDDEN']);
  expect(await codesOf('{ allPersons { id } }', admin)).toBeUndefined();
  expect(await codesOf(move, admin)).toBeUndefined();
});

test('the loss of the tokens can be rehearsed with the commands of docs/sandbox.md', async () => {
  using folder = temporaryFolder('disk');
  const [, , keepState, importAndServe, lose, recover] = blocks('sh');
  let port = '0';
  const startSandbox = async () => {
    const sandbox = startProgram(argumentsOf(keepState!.trim(), port), { cwd: folder.path });
    [, port = ''] = await sandbox.printed(/Base URL\s+http:\/\/127\.0\.0\.1:(\d+)/);
    return sandbox;
  };
  const run = (commands: string) => runInShell(commands.replaceAll('4100', port), folder.path);
  const first = await startSandbox();
  const commands = importAndServe!.trim().split('\n');
  const serve = commands.pop();
  expect(serve).toBe('ALLOW_ANONYMOUS=true npm start');
  expect(await run(commands.join('\n'))).toMatch(/Imported .*\nToken store: .*\nRefreshed at once/);
  await using gateway = await served(
    startProgram([], {
      cwd: folder.path,
      env: {
        ALLOW_ANONYMOUS: 'true',
        RECRUITING_URL: `http://127.0.0.1:${port}`,
        TOKEN_STORE: 'sqlite:data/rehearsal/tokens.db',
      },
    }),
  );
  const ask = async () => {
    const { errors } = await askAt(gateway.url, '{ persons(first: 1) { items { id } } }');
    return errors?.[0]?.extensions?.['code'];
  };
  expect(await ask()).toBeUndefined();

  first.signal('SIGTERM');
  await first.ended;
  await using second = await startSandbox();
  expect(await ask()).toBeUndefined();

  const [environment, revoke, ...refresh] = lose!.trim().split('\n');
  expect(await run(`${environment}\n${revoke}`)).toContain('All tokens are revoked.');
  expect(await ask()).toBe('UPSTREAM_UNAUTHORIZED');
  expect(await run([environment, ...refresh].join('\n'))).toMatch(/State +LOST/);
  await expect.poll(ask, { timeout: 30_000 }).toBe('TOKENS_LOST');

  expect(await run(`${environment}\n${recover}`)).toMatch(/Refreshed at once[^]*healthy/);
  await expect.poll(ask, { timeout: 30_000 }).toBeUndefined();
  second.signal('SIGTERM');
  await second.ended;
});

/** The contents of the code blocks in a language. */
function blocks(language: string): string[] {
  return blocksOf('docs/sandbox.md').flatMap((block) =>
    block.language === language ? [block.text] : [],
  );
}

/** The arguments of `npm start -- …`, on another port. */
function argumentsOf(command: string, port = '0'): string[] {
  return command
    .replace('npm start -- ', '')
    .replace(/--port \d+/, `--port ${port}`)
    .split(' ');
}
