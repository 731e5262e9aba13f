/** `export --child`: the lists below the records, each in a file of its own. */
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { listeningGateway, type ListeningGateway } from '../support/gateway/listening-gateway.ts';
import { runHere } from '../support/gateway/run-here.ts';
import {
  failure,
  makeExecutableSchema,
  pageOf,
  type PageArgs,
} from '../support/imitations/honest.ts';
import { randomRuns, usually } from '../support/random/random-runs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { whenWritten } from '../support/when-written.ts';

const SDL = `
  type Query { persons(first: Int, after: String): PersonPage! tags: TagPage }
  type PersonPage { items: [Person!]! pageInfo: PageInfo! }
  type TagPage { items: [String!]! pageInfo: PageInfo! }
  type Person {
    id: Int!
    firstName: String
    skills: [String!]
    history(since: Int): [Event]
    notes: [Note!]!
  }
  type Event { year: Int! stage: String by: Person }
  type Note { text: String parentId: Int }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
`;
const PERSONS = Array.from({ length: 60 }, (_, id) => ({
  id,
  firstName: `Name ${id}`,
  skills: ['law'],
  events: Array.from({ length: id % 4 }, (__, at) => ({ year: 2020 + at, stage: `=${id}-${at}` })),
  notes: [{ text: `Note ${id}`, parentId: 1 }],
}));
const EVENTS = PERSONS.flatMap(({ id, events }) =>
  events.map((each) => ({ parentId: id, ...each })),
);

let onPage = (): void => {};
let gateway: TestGateway;
let door: ListeningGateway;
const folder = temporaryFolder();
beforeAll(async () => {
  const schema = makeExecutableSchema(SDL, {
    Query: {
      persons: (_: unknown, args: PageArgs) => {
        onPage();
        return pageOf(PERSONS, args, 8);
      },
    },
    Person: {
      history: ({ id, events }: (typeof PERSONS)[number], { since }: { since?: number }) => {
        if (id === 13) return null;
        if (since === 1) throw failure('The service cannot read this.');
        const all = events.filter(({ year }) => year >= (since ?? 0));
        return id === 14 ? [null, ...all] : all;
      },
    },
  });
  gateway = await startGatewayOverSandbox({ schema }, { snapshot: SDL });
  door = await listeningGateway(gateway);
});
afterAll(async () => {
  await door[Symbol.asyncDispose]();
  await gateway[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** Person 13 has no list, which is not an empty one. */
const written = EVENTS.filter(({ parentId }) => parentId !== 13);
const linesIn = (file: string): unknown[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as unknown);

let places = 0;
const newPlace = () => {
  const place = folder.file(`place-${(places += 1)}`);
  return promises.mkdir(place).then(() => ({
    place,
    file: `${place}/persons.ndjson`,
    history: `${place}/persons.history.ndjson`,
  }));
};
const exportTo = (file: string, ...args: string[]) =>
  runHere(['export', 'persons', '--output', file, '--url', door.url, ...args]);

test('each element of the list is a line of its own file, with the id of its record', async () => {
  const { place, file, history } = await newPlace();
  const { code, stderr } = await exportTo(file, '--child', 'history');
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: expect.stringContaining(`60 records in ${file}, ${history}.`),
  });
  expect(linesIn(history)).toEqual(written);
  expect(linesIn(file)[3]).toEqual({ id: 3, firstName: 'Name 3', skills: ['law'] });
  expect(readdirSync(place)).toEqual(['persons.history.ndjson', 'persons.ndjson']);
  expect(statSync(history).mode & 0o777).toBe(0o600);
});

test('fields and arguments of the list are given as in GraphQL, and several lists have a file each', async () => {
  const { place, file, history } = await newPlace();
  const children = ['history(since: 2022) { stage by { id } }', 'notes { text }'];
  const args = children.flatMap((child) => ['--child', child]);
  expect(await exportTo(file, '--fields', 'firstName', ...args)).toMatchObject({ code: 0 });
  expect(linesIn(history)).toEqual(
    written
      .filter(({ year }) => year >= 2022)
      .map(({ parentId, stage }) => ({ parentId, stage, by: null })),
  );
  expect(linesIn(`${place}/persons.notes.ndjson`)).toEqual(
    PERSONS.map(({ id, notes }) => ({ parentId: id, text: notes[0]!.text })),
  );
  expect(linesIn(file)).toEqual(PERSONS.map(({ firstName }) => ({ firstName })));
});

test('CSV has a column with the id of the record, and compressed files are compressed', async () => {
  const { place } = await newPlace();
  const args = ['--format', 'csv', '--child', 'history'];
  expect(await exportTo(`${place}/persons.csv.gz`, ...args)).toMatchObject({ code: 0 });
  const text = gunzipSync(readFileSync(`${place}/persons.history.csv.gz`)).toString();
  expect(text.split('\n').slice(0, 3)).toEqual([
    'parentId,year,stage',
    `1,2020,'=1-0`,
    `2,2020,'=2-0`,
  ]);
  expect(text.match(/\n/g)).toHaveLength(1 + written.length);
});

test('a list that the service cannot give is reported, and is not an empty one', async () => {
  const { file } = await newPlace();
  expect(await exportTo(file, '--child', 'history(since: 1) { year }')).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('59 values could not be read'),
  });
});

describe('paged lists', () => {
  let rich: TestGateway;
  let richDoor: ListeningGateway;
  beforeAll(async () => {
    const snapshot = readFileSync('schema/rich.graphql', 'utf8');
    rich = await startGatewayOverSandbox({ rich: true }, { snapshot });
    richDoor = await listeningGateway(rich);
  });
  afterAll(async () => {
    await richDoor[Symbol.asyncDispose]();
    await rich[Symbol.asyncDispose]();
  });
  const exportVacancies = (...args: string[]) =>
    runHere(['export', 'vacancies', ...args, '--url', richDoor.url]);

  test('--child reads a paged list of each record whole', async () => {
    using others = temporaryFolder();
    const file = others.file('vacancies.ndjson');
    const args = ['--child', 'candidates { id stage }', '--output', file];
    expect(await exportVacancies(...args)).toMatchObject({ code: 0 });
    const fields = ['--fields', 'id stage vacancy { id }'];
    const all = await runHere(['export', 'candidates', ...fields, '--url', richDoor.url]);
    const expected = all.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: string; stage: string; vacancy: { id: string } })
      .map(({ id, stage, vacancy }) => ({ parentId: vacancy.id, id, stage }));
    const lines = linesIn(others.file('vacancies.candidates.ndjson')) as typeof expected;
    expect(lines.toSorted(byId)).toEqual(expected.toSorted(byId));
    expect(lines.length).toBeGreaterThan(50);
  });

  const OF_RECORD =
    /: only the first page of candidates .* --child candidates, or take .* allCandidates { … }, or .* candidates\(first: 50\)\./;
  const OF_ELEMENT =
    /: only the first page of comments .*\. Say how many .* comments\(first: 50\)\./;
  test.each([
    ['--fields', 'id candidates { items { id } }', OF_RECORD],
    ['--fields', 'id candidates { ... on CandidatePage { items { id } } }', OF_RECORD],
    ['--fields', 'allCandidates { comments { items { id } } }', OF_ELEMENT],
    ['--child', 'candidates { id comments { items { id } } }', OF_ELEMENT],
  ])('%s "%s" is refused, because it would export only a first page', async (option, text, why) => {
    using others = temporaryFolder();
    const args = [option, text, '--output', others.file('x.ndjson')];
    const { code, stderr } = await exportVacancies(...args);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(why) });
    expect(readdirSync(others.path)).toEqual([]);
  });

  test.each([
    'id candidates(first: 5) { items { id } }',
    'id candidates { pageInfo { hasNextPage } }',
    'id allCandidates { id }',
  ])('--fields "%s" says how much it takes, and is exported', async (fields) => {
    expect(await exportVacancies('--fields', fields, '--limit', '2')).toMatchObject({ code: 0 });
  });

  test('without a schema, a warning says what may be cut', async () => {
    await using hidden = await startGatewayOverSandbox(
      { rich: true },
      { snapshot: readFileSync('schema/rich.graphql', 'utf8'), config: { introspection: false } },
    );
    await using hiddenDoor = await listeningGateway(hidden);
    const run = (fields: string) =>
      runHere(['export', 'vacancies', '--fields', fields, '--quiet', '--url', hiddenDoor.url]);
    const cut = await run('id candidates { items { id } }');
    expect(cut).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('If candidates is a paged'),
    });
    const said = await run('id candidates(first: 5) { items { id } }');
    expect(said).toMatchObject({ code: 0, stderr: '' });
  });
});

test.each<[string[], RegExp]>([
  [
    ['--child', 'nothing'],
    /nothing is not a list .* Choose one of these for --child: history, notes/,
  ],
  [['--child', 'skills'], /skills is not a list of objects/],
  [['--child', 'a: history'], /without an alias/],
  [['--child', 'history notes'], /takes one list/],
  [['--child', 'history { nobody }'], /nobody/],
  [['--child', 'notes'], /parentId is the column/],
  [['--child', 'history', '--child', 'history'], /given twice/],
])('%j is a mistake, and nothing is written', async (args, why) => {
  const { place, file } = await newPlace();
  expect(await exportTo(file, ...args)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(why),
  });
  expect(readdirSync(place)).toEqual([]);
});

test('--child needs --output', async () => {
  expect(
    await runHere(['export', 'persons', '--child', 'history', '--url', door.url]),
  ).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('--output') });
});

test('neither file is replaced without --force', async () => {
  const { file, history } = await newPlace();
  writeFileSync(history, 'precious\n');
  expect(await exportTo(file, '--child', 'history')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`${history} exists already`),
  });
  expect(readFileSync(history, 'utf8')).toBe('precious\n');
  expect(await exportTo(file, '--child', 'history', '--force')).toMatchObject({ code: 0 });
  expect(linesIn(history)).toEqual(written);
});

test('wherever an export is interrupted, even while the files get their names, --resume makes all files whole', async () => {
  const whole = await newPlace();
  await exportTo(whole.file, '--child', 'history');
  let continued = 0;
  const cut = fc.record({
    page: fc.integer({ min: 1, max: 9 }),
    /** Names that the files get before a crash. */
    names: fc.constantFrom(0, 1),
    ending: fc.constantFrom('ndjson', 'ndjson.gz'),
    args: fc.constantFrom(['--resume'], ['--resume', '--force']),
  });
  await fc.assert(
    fc.asyncProperty(cut, async ({ page, names, ending, args }) => {
      const { place } = await newPlace();
      const [file, history] = [`${place}/persons.${ending}`, `${place}/persons.history.${ending}`];
      const stopping = new AbortController();
      let pages = 0;
      onPage = () => {
        if ((pages += 1) < page) return;
        if (page === 1) stopping.abort();
        else void whenWritten(file).then(() => stopping.abort());
        throw failure('The service is going down.');
      };
      const all = ['export', 'persons', '--output', file, '--child', 'history', '--url', door.url];
      const first = await withRenames(names, () => runHere(all, {}, [], { stop: stopping.signal }));
      onPage = () => {};
      expect(first.code).toBe(1);
      expect(existsSync(file)).toBe(false);
      const { code, stderr } = await exportTo(file, '--child', 'history', ...args);
      expect({ code, stderr }).toMatchObject({ code: 0 });
      if (stderr.includes('Continuing')) continued += 1;
      const textOf = (path: string) =>
        (ending.endsWith('gz') ? gunzipSync(readFileSync(path)) : readFileSync(path)).toString();
      expect(textOf(file)).toBe(readFileSync(whole.file, 'utf8'));
      expect(textOf(history)).toBe(readFileSync(whole.history, 'utf8'));
      expect(readdirSync(place)).toHaveLength(2);
      rmSync(place, { recursive: true });
    }),
    { endOnFailure: true, numRuns: randomRuns(12) },
  );
  expect(continued).toBeGreaterThanOrEqual(usually(1));
});

function byId(a: { readonly id: string }, b: { readonly id: string }): number {
  return Number(a.id) - Number(b.id);
}

/** As if the process was killed when this many files had got their names. */
async function withRenames<T>(names: number, work: () => Promise<T>): Promise<T> {
  const { rename } = promises;
  let renamed = 0;
  promises.rename = (from, to) => {
    renamed += 1;
    if (renamed <= names) return rename(from, to);
    return Promise.reject(Object.assign(new Error('killed'), { code: 'EIO' }));
  };
  syncBuiltinESMExports();
  try {
    return await work();
  } finally {
    promises.rename = rename;
    syncBuiltinESMExports();
  }
}
