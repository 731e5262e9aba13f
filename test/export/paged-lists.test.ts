/** Paged lists below the exported records, of which a plain selection would export only the first page. */
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { listeningGateway, type ListeningGateway } from '../support/gateway/listening-gateway.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const snapshot = readFileSync('schema/rich.graphql', 'utf8');
let gateway: TestGateway;
let door: ListeningGateway;
beforeAll(async () => {
  gateway = await startGatewayOverSandbox({ schema: 'rich' }, { snapshot });
  door = await listeningGateway(gateway);
});
afterAll(async () => {
  await door[Symbol.asyncDispose]();
  await gateway[Symbol.asyncDispose]();
});
const exportVacancies = (...args: string[]) =>
  runHere(['export', 'vacancies', ...args, '--url', door.url]);

test('an all… field below the records has all elements of its list', async () => {
  const nested = await exportVacancies('--fields', 'id allCandidates { id }');
  expect(nested.code).toBe(0);
  const inVacancies = linesOf<{ id: string; allCandidates: { id: string }[] }>(
    nested.stdout,
  ).flatMap(({ id, allCandidates }) => allCandidates.map((each) => `${id} ${each.id}`));
  const fields = ['--fields', 'id vacancy { id }', '--url', door.url];
  const all = await runHere(['export', 'candidates', ...fields]);
  const candidates = linesOf<{ id: string; vacancy: { id: string } }>(all.stdout);
  expect(inVacancies.toSorted()).toEqual(
    candidates.map(({ id, vacancy }) => `${vacancy.id} ${id}`).toSorted(),
  );
  expect(inVacancies.length).toBeGreaterThan(50);
});

const OF_RECORD =
  /: only the first page of candidates .*\. Take all of it with allCandidates { … }, or .* candidates\(first: 50\)\./;
const OF_ELEMENT = /: only the first page of comments .*\. Say how many .* comments\(first: 50\)\./;
test.each([
  ['id candidates { items { id } }', OF_RECORD],
  ['id candidates { ... on CandidatePage { items { id } } }', OF_RECORD],
  ['allCandidates { comments { items { id } } }', OF_ELEMENT],
])('--fields "%s" is refused, because it would export only a first page', async (fields, why) => {
  using folder = temporaryFolder();
  const args = ['--fields', fields, '--output', folder.file('x.ndjson')];
  const { code, stderr } = await exportVacancies(...args);
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(why) });
  expect(readdirSync(folder.path)).toEqual([]);
});

test.each([
  'id candidates(first: 5) { items { id } }',
  'id candidates { pageInfo { hasNextPage } }',
])('--fields "%s" says how much it takes, and is exported', async (fields) => {
  expect(await exportVacancies('--fields', fields, '--limit', '2')).toMatchObject({ code: 0 });
});

test('without a schema, a warning says what may be cut', async () => {
  await using hidden = await startGatewayOverSandbox(
    { schema: 'rich' },
    { snapshot, config: { introspection: false } },
  );
  await using hiddenDoor = await listeningGateway(hidden);
  const run = (fields: string) =>
    runHere(['export', 'vacancies', '--fields', fields, '--url', hiddenDoor.url]);
  const cut = await run('id candidates { items { id } }');
  expect(cut).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('If candidates is a paged'),
  });
  const whole = await run('id candidates(first: 5) { items { id } }');
  expect(whole.code).toBe(0);
  expect(whole.stderr).not.toContain('If candidates is a paged');
});

function linesOf<T>(text: string): T[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as T);
}
