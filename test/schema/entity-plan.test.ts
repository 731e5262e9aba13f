import { expect, test } from 'vitest';
import type { EntityReport } from '../../src/schema/derivation/entities.ts';
import { fullSdl } from '../support/imitations/honest.ts';
import { servedOffline } from '../support/gateway/served-offline.ts';

const PAGES = `
  type Job { id: ID! }
  type JobPage { items: [Job!]! pageInfo: PageInfo! }
  type ThingPage { items: [Thing!]! pageInfo: PageInfo! }
  union Thing = Job
  type PageInfo { hasNextPage: Boolean! endCursor: String }
`;

test.each([
  ['by its id, before any list', 'job(id: ID!): Job jobs(%): JobPage', 'job(id: …)'],
  ['in the only list', 'jobs(%): JobPage', 'jobs'],
  ['in no list that needs arguments', 'old(%, year: Int!): JobPage jobs(%): JobPage', 'jobs'],
  [
    'in a list of its own before one of several types',
    'job(%): ThingPage zz(%, a: Int): JobPage',
    'zz',
  ],
  ['in the list with the fewest filters', 'jobs(%, a: Int): JobPage zz(%): JobPage', 'zz'],
  ['then in the one called like the type', 'a(%): JobPage jobList(%): JobPage', 'jobList'],
  ['then in the one with the shortest name', 'jobsOld(%): JobPage jobs(%): JobPage', 'jobs'],
  ['then in the first of the alphabet', 'jobs2(%): JobPage jobs1(%): JobPage', 'jobs1'],
  ['in a list of several types', 'things(%): ThingPage', 'things'],
])('a record is found %s', (_, fields, foundBy) => {
  const { reports, schema } = served(`type Query { ${paged(fields)} } ${PAGES}`);
  expect(entity(reports, 'Job')).toMatchObject({ foundBy: `Query.${foundBy}` });
  const derives = !foundBy.includes('(');
  expect(String(schema.getQueryType()!.getFields()['job']?.type)).toBe(
    fields.startsWith('job(%)') ? 'ThingPage' : 'Job',
  );
  if (!fields.startsWith('job(%)'))
    expect(entity(reports, 'Job').field).toBe(derives ? 'job' : null);
});

test('the argument of the derived field has the type of the id', () => {
  const { schema } = served(`
    scalar Code
    type Job { id: Code! }
    type Query { ${paged('jobs(%): JobPage')} }
    type JobPage { items: [Job!]! pageInfo: PageInfo! }
    type PageInfo { hasNextPage: Boolean! endCursor: String }
  `);
  const { type, args } = schema.getQueryType()!.getFields()['job']!;
  expect([String(type), args.map((arg) => `${arg.name}: ${String(arg.type)}`)]).toEqual([
    'Job',
    ['id: Code!'],
  ]);
});

test('a field whose name is taken is not derived, with a warning', () => {
  const { reports, warnings } = served(
    `type Query { job: Int ${paged('jobs(%): JobPage')} } ${PAGES}`,
  );
  const clash = 'Query.job is not derived: a field of that name already exists.';
  expect(warnings).toEqual([clash]);
  expect(entity(reports, 'Job')).toEqual({
    type: 'Job',
    foundBy: 'Query.jobs',
    field: null,
    why: ['Query.jobs: it lists the type, and needs no arguments.', clash],
  });
});

test('a type whose records cannot be found is reported with the reason', () => {
  const { reports, subgraphSdl } = served(`type Query {
    ${paged('jobs(%, year: Int!): JobPage')} robot: Robot options: Options plain: Plain
  }
  type Robot { id: ID! }
  type Options { id(as: String): ID! }
  type Plain { id: Plain }
  ${PAGES}`);
  const types = reports.flatMap((report) => ('type' in report ? [report] : []));
  expect(types).toEqual([
    {
      type: 'Job',
      foundBy: null,
      field: null,
      why: [
        'no root field returns it by its id alone, and the lists of it (Query.jobs) need arguments.',
      ],
    },
    {
      type: 'Robot',
      foundBy: null,
      field: null,
      why: [expect.stringContaining('no paged field of the root lists Robot')],
    },
  ]);
  expect(subgraphSdl()).toContain('type Robot @key(fields: "id", resolvable: false)');
  // A key may not have arguments, and must be a scalar.
  expect(subgraphSdl()).toContain('type Options {');
  expect(subgraphSdl()).toContain('type Plain {');
});

test('adapters.json overrides the decision', () => {
  const sdl = `type Query { ${paged('jobs(%): JobPage all(%, a: Int): JobPage')} job(id: ID!): Job } ${PAGES}`;
  const foundBy = (types: unknown) => entity(served(sdl, { types }).reports, 'Job').foundBy;
  expect(foundBy({})).toBe('Query.job(id: …)');
  expect(foundBy({ Job: { byId: null } })).toBe('Query.jobs');
  expect(foundBy({ Job: { byId: null, list: 'all' } })).toBe('Query.all');
  expect(foundBy({ Job: { byId: null, list: null } })).toBe(null);
});

test.each([
  [{ Event: { list: 'vacancies' } }, 'types.Event.list: Event has no plain field id. Remove it.'],
  [{ Vacancy: { list: 'nobody' } }, 'types.Vacancy.list: there is no paged field Query.nobody.'],
  [{ Vacancy: { list: 'viewer' } }, 'types.Vacancy.list: there is no paged field Query.viewer.'],
  [
    { Agency: { list: 'vacancies' } },
    'types.Agency.list: Query.vacancies lists Vacancy. Write one that',
  ],
  [{ Vacancy: { list: 5 } }, 'types.Vacancy.list: '],
])('a mistake in adapters.json is reported: %j', (types, message) => {
  expect(() => served(fullSdl, { types })).toThrow(message);
});

test('the default of a filter limits which records are found, and that is reported', () => {
  const { reports } = served(
    `type Query { ${paged('jobs(%, open: Boolean = true): JobPage')} } ${PAGES}`,
  );
  expect(entity(reports, 'Job').why).toContain(
    'Only records that match the default of its filter open are found.',
  );
});

function paged(fields: string): string {
  return fields.replaceAll('%', 'first: Int, after: String');
}

function entity(reports: readonly object[], type: string): EntityReport {
  return reports.find((report) => 'type' in report && report.type === type) as EntityReport;
}

function served(sdl: string, overrides?: unknown) {
  return servedOffline(sdl, { overrides });
}
