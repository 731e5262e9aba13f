import fc from 'fast-check';
import { isCompositeType, parse, validate } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { askDirectly } from '../support/clients/direct.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import {
  operationAround,
  randomSelection,
  type RandomSelection,
} from '../support/random/random-operation.ts';
import { randomRuns } from '../support/random/random-runs.ts';
import { fullScalar, fullSdl, fullService } from '../support/imitations/honest.ts';

const LISTS = [
  { field: 'activeCandidates', all: 'allActiveCandidates', type: 'Candidate' },
  { field: 'candidates', all: 'allCandidates', type: 'Candidate' },
  // The upstream of the tests has its own allOpenings.
  { field: 'openings', all: undefined, type: 'Vacancy', args: 'first: 50' },
  { field: 'applicants', all: 'allApplicants', type: 'Applicant' },
  { field: 'named', all: 'allNamed', type: 'Named' },
  { field: 'events', all: 'allEvents', type: 'Event', filters: 'candidate: 11' },
];
const { schema } = fullService();
let rich: Awaited<ReturnType<typeof startGatewayOverSandbox>>;

beforeAll(async () => {
  rich = await startGatewayOverSandbox(
    { schema },
    {
      snapshot: fullSdl,
      overrides: { fields: { 'Query.events': { identity: 'at' } } },
      config: { maxAliases: 1_000, maxTokens: 20_000 },
    },
  );
  await rich.ask('{ me { __typename } }');
});
afterAll(() => rich[Symbol.asyncDispose]());

test('all… and …Connection return what the pages return, with values and errors at the same paths', async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...LISTS), fc.gen(), async (list, g) => {
      const type = schema.getType(list.type);
      if (!isCompositeType(type)) throw new TypeError(list.type);
      const random = randomSelection(schema, type, g, { scalar: fullScalar });
      const pages = await readPages(list, random);
      fc.pre(pages !== undefined);
      const { records, errors } = pages;

      if (list.all) {
        const drained = await through(list, random, list.all, (selection) => selection);
        expect(drained.data, drained.query).toEqual(records);
        expect(drained.errors, drained.query).toEqual(
          at(errors, ([index, ...rest]) => [index!, ...rest]),
        );
      }
      const connection = await through(
        list,
        random,
        `${list.field}Connection`,
        (selection) => `{ e: edges { n: node ${selection} } nodes ${selection} }`,
        'first: 500',
      );
      if (errors.length === 0) {
        expect(connection.data, connection.query).toEqual({
          e: records.map((n) => ({ n })),
          nodes: records,
        });
      }
      expect(connection.errors, connection.query).toEqual(
        sorted([
          ...at(errors, ([index, ...rest]) => ['e', index!, 'n', ...rest]),
          ...at(errors, ([index, ...rest]) => ['nodes', index!, ...rest]),
        ]),
      );
    }),
    {
      numRuns: randomRuns(100),
      timeout: 60_000,
      interruptAfterTimeLimit: 100_000,
    },
  );
}, 120_000);

test('a cursor of another list, or of the same list with other filters, is refused', async () => {
  const active = await cursorOf('activeCandidatesConnection(first: 3)');
  expect(await use('activeCandidatesConnection(after: $after)', active)).toBeUndefined();
  expect(await use('allActiveCandidates(after: $after, limit: 1)', active)).toBeUndefined();
  expect(await use('namedConnection(after: $after)', active)).toBe('CURSOR_INVALID');
  expect(await use('allNamed(after: $after)', active)).toBe('CURSOR_INVALID');

  const open = await cursorOf('openingsConnection(first: 3, open: true)');
  expect(await use('openingsConnection(after: $after, open: true)', open)).toBeUndefined();
  expect(await use('openingsConnection(after: $after, open: false)', open)).toBe('CURSOR_INVALID');
  expect(await use('openingsConnection(after: $after)', open)).toBe('CURSOR_INVALID');

  const offers = await cursorOf('candidatesConnection(filter: { stage: [OFFER], minScore: 1 })');
  expect(
    await use(
      'candidatesConnection(after: $after, filter: { minScore: 1, stage: [OFFER] })',
      offers,
    ),
  ).toBeUndefined();
  expect(
    await use('candidatesConnection(after: $after, filter: { stage: [NEW], minScore: 1 })', offers),
  ).toBe('CURSOR_INVALID');
});

test('derived fields pass on filters, defaults and nulls to the upstream', async () => {
  const { data, errors } = await rich.ask<Record<string, { stage: string }[]>>(
    `query ($stages: [Stage!] = [OFFER]) {
      byVariable: allCandidates(filter: { stage: $stages }) { stage }
      byLiteral: allCandidates(filter: { stage: [TRIAL] }, stage: null) { stage }
      limited: allCandidates(limit: 3) { stage }
      drainLimited: allCandidates(drainLimit: 2, limit: 9) { stage }
    }`,
  );
  expect(errors).toBeUndefined();
  expect(stages(data['byVariable'])).toEqual(new Set(['OFFER']));
  expect(stages(data['byLiteral'])).toEqual(new Set(['TRIAL']));
  expect(data['limited']).toHaveLength(3);
  expect(data['drainLimited']).toHaveLength(2);
});

async function cursorOf(call: string): Promise<string> {
  const { data } = await rich.ask<{ c: { edges: { cursor: string }[] } }>(
    `{ c: ${call} { edges { cursor } } }`,
  );
  return data.c.edges[0]!.cursor;
}

/** The error code of using the cursor in this field. */
async function use(call: string, after: string): Promise<unknown> {
  const { errors } = await rich.ask(`query ($after: String) { c: ${call} { __typename } }`, {
    after,
  });
  return errors?.[0]?.extensions?.['code'];
}

function stages(list: { stage: string }[] = []): Set<string> {
  return new Set(list.flatMap((record) => record?.stage ?? []));
}

type Path = readonly (string | number)[];
interface ReportedError {
  path: Path;
  message: string;
  extensions: object;
}
type List = (typeof LISTS)[number];

/** Reads the pages of the upstream itself. Undefined if the random selection is not valid there. */
async function readPages(list: List, random: RandomSelection) {
  const records: unknown[] = [];
  const errors: ReportedError[] = [];
  for (let after: string | null = null; ;) {
    const args = [list.args, list.filters, 'after: $after'].filter(Boolean).join(', ');
    const operation = operationAround(
      random,
      `{ page: ${list.field}(${args}) { items ${random.selection} pageInfo { hasNextPage endCursor } } }`,
      [list.field === 'applicants' ? '$after: ID' : '$after: String'],
    );
    if (validate(schema, parse(operation.query)).length > 0) return undefined;
    const answer = await askDirectly(rich, {
      ...operation,
      variables: { ...operation.variables, after },
    });
    const page = answer.data?.['page'] as Page | null | undefined;
    // An error that nulls the whole page has no record in its path.
    if (!page?.items) return undefined;
    for (const { path, message, extensions } of answer.errors ?? []) {
      const [, , index, ...rest] = path ?? [];
      errors.push({
        path: [records.length + Number(index), ...rest],
        message,
        extensions: extensions ?? {},
      });
    }
    records.push(...page.items);
    if (!page.pageInfo.hasNextPage) return { records: inServedNames(records), errors };
    after = page.pageInfo.endCursor;
  }
}

interface Page {
  items: unknown[] | null;
  pageInfo: { hasNextPage: boolean; endCursor: string };
}

async function through(
  list: List,
  random: RandomSelection,
  field: string,
  body: (selection: string) => string,
  args?: string,
) {
  const all = [list.filters, args].filter(Boolean).join(', ');
  const call = all ? `${field}(${all})` : field;
  const operation = operationAround(random, `{ list: ${call} ${body(random.selection)} }`);
  const query = operation.query.replaceAll(/\bon PageInfo\b/g, 'on UpstreamPageInfo');
  const { data, errors = [] } = await rich.ask<{ list: unknown }>(query, operation.variables);
  // The selection is there twice for a connection, which may be more than the limits of an operation allow.
  const isTwice = field.endsWith('Connection');
  fc.pre(!isTwice || !errors.some((error) => !error.path && isTooComplex(error)));
  const reported = errors.map(({ path, message, extensions }) => ({
    path: path!.slice(1),
    message,
    extensions: extensions ?? {},
  }));
  return { query, data: data.list, errors: sorted(reported) };
}

function isTooComplex({ extensions }: { extensions?: Record<string, unknown> }): boolean {
  return extensions?.['code'] === 'OPERATION_TOO_COMPLEX';
}

function at(errors: readonly ReportedError[], move: (path: Path) => Path): ReportedError[] {
  return sorted(errors.map((error) => ({ ...error, path: move(error.path) })));
}

function sorted(errors: readonly ReportedError[]): ReportedError[] {
  return errors.toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));
}

function inServedNames(records: unknown[]): unknown[] {
  return JSON.parse(JSON.stringify(records).replaceAll('"PageInfo"', '"UpstreamPageInfo"'));
}
