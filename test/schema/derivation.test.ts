import { printSchema } from 'graphql';
import { describe, expect, test } from 'vitest';
import type { EntityReport } from '../../src/schema/derivation/entities.ts';
import type { ListReport } from '../../src/schema/derivation/adapters.ts';
import { servedOffline } from '../support/gateway/served-offline.ts';

const PAGES = `
  type Note { id: ID! text: String size: Int }
  type NotePage { items: [Note!]! pageInfo: PageInfo! total: Int }
  type JobPage { items: [Job!]! pageInfo: PageInfo! }
  type ThingPage { items: [Thing!]! pageInfo: PageInfo! }
  union Thing = Job | Note
  type PageInfo { hasNextPage: Boolean! endCursor: String }
`;

describe('a nested list is derived where its parent is reached again', () => {
  test.each([
    ['by the shortest name', 'jobById(id: ID!): Job getJob(id: ID!): Job!', 'getJob(id: …)'],
    ['by the first of the alphabet', 'bJob(id: ID!): Job aJob(id: ID!): Job', 'aJob(id: …)'],
    ['by a field that takes options', 'job(id: ID!, draft: Boolean): Job', 'job(id: …)'],
    ['by a field that returns a result', 'job(id: ID!): JobResult', 'job(id: …)'],
    ['by a result beside a type without an id', 'job(id: ID!): HintResult', 'job(id: …)'],
    [
      'by the type itself before a result',
      'job(id: ID!): JobResult jobById(id: ID!): Job',
      'jobById(id: …)',
    ],
    ['not by an id of another type', 'job(id: Int!): Job', null],
    ['not where more is required', 'job(id: ID!, year: Int!): Job', null],
    ['not where the id may be left out', 'job(id: ID): Job', null],
    ['not by a result with another record', 'job(id: ID!): NewsResult', null],
    ['not by a path without an id', 'holder: Holder', null],
  ])('%s', (_, fields, parent) => {
    const used = (name: string, sdl: string) => (fields.includes(name) ? sdl : '');
    const sdl = `type Query { ${fields} }
      ${used('Holder', 'type Holder { job: Job }')}
      ${used('NewsResult', 'union NewsResult = Job | News type News { id: ID! message: String }')}
      ${used('HintResult', 'union HintResult = Job | Hint type Hint { text: String }')}
      ${used('JobResult', 'union JobResult = Job | JobError type JobError { id: ID! code: String }')}
      type Job { id: ID! notes(first: Int, after: String): NotePage! }
      type Note { id: ID! } type NotePage { items: [Note!]! pageInfo: PageInfo! }
      type PageInfo { hasNextPage: Boolean! endCursor: String }`;
    const report = list(sdl, 'Job.notes');
    expect(report.parent).toBe(parent);
    expect(report.all).toBe(parent === null ? null : 'allNotes');
    expect(report.connection).toBe(parent === null ? null : 'notesConnection');
    if (parent === null) expect(report.why[0]).toContain('"types": { "Job": { "byId": "…" } }');
  });
});

describe('a record is found', () => {
  test.each([
    ['by its id, before any list', 'job(id: ID!): Job jobs(%): JobPage', 'job(id: …)', null],
    [
      'in a list without required arguments',
      'a(%, year: Int!): JobPage jobs(%): JobPage',
      'jobs',
      'job',
    ],
    ['in a list of its own type', 'a(%): ThingPage jobs(%): JobPage', 'jobs', 'job'],
    ['in the list with the shortest name', 'jobsOld(%): JobPage jobs(%): JobPage', 'jobs', 'job'],
    ['in the first list of the alphabet', 'jobs2(%): JobPage jobs1(%): JobPage', 'jobs1', 'job'],
    ['in a list of several types', 'things(%): ThingPage', 'things', 'job'],
    ['without a field if its name is taken', 'job: Int jobs(%): JobPage', 'jobs', null],
  ])('%s', (_, fields, foundBy, field) => {
    const sdl = `type Query { ${paged(fields)} } type Job { id: ID! } ${PAGES}`;
    expect(entity(sdl, 'Job')).toMatchObject({ foundBy: `Query.${foundBy}`, field });
  });

  test('by nothing, if only lists with required arguments have it', () => {
    const sdl = `type Query { ${paged('jobs(%, year: Int!): JobPage')} plain: Plain }
      type Plain { id(as: String): ID! } type Job { id: ID! } ${PAGES}`;
    expect(entity(sdl, 'Job')).toMatchObject({ foundBy: null, field: null });
    const printed = servedOffline(sdl).subgraphSdl();
    expect(printed).toContain('type Job @key(fields: "id", resolvable: false)');
    // A key may not have arguments.
    expect(printed).toContain('type Plain {');
  });

  test('by the field and in no other way, as adapters.json says', () => {
    const sdl = `type Query { ${paged('jobs(%): JobPage')} job(id: ID!): Job find(key: ID!): Job }
      type Job { id: ID! nr: Int } ${PAGES}`;
    const foundBy = (byId: unknown) => entity(sdl, 'Job', { types: { Job: { byId } } }).foundBy;
    expect(foundBy('find')).toBe('Query.find(key: …)');
    expect(foundBy(null)).toBe('Query.jobs');
    const fields = { 'Query.jobs': { identity: 'nr' } };
    const types = { Job: { byId: null } };
    expect(entity(sdl, 'Job', { fields, types }).foundBy).toBeNull();
  });

  test('by an id with the scalar of the service', () => {
    const { schema } = servedOffline(`scalar Code type Job { id: Code! }
      type Query { ${paged('jobs(%): JobPage')} } ${PAGES}`);
    expect(String(schema.getQueryType()!.getFields()['job']!.args[0]!.type)).toBe('Code!');
  });
});

describe('names that are taken', () => {
  test('the arguments of the gateway are renamed if a filter has their name', () => {
    const { adapters } = servedOffline(`type Query {
      notes(first: Int, after: String, limit: Int, last: Int, connectionLast: Int, before: Int): NotePage!
    } type Job { id: ID! } ${PAGES}`);
    expect(adapters[0]).toMatchObject({
      all: { limit: 'drainLimit', after: 'after' },
      connection: { last: 'connectionLast_', before: 'connectionBefore' },
    });
  });

  test.each([
    ['', 'NoteConnection'],
    ['type NoteConnection { text: String }', 'RelayNoteConnection'],
    ['type NoteEdge { text: String }', 'RelayNoteConnection'],
    ['type NoteEdge { text: String } type RelayNoteEdge { text: String }', undefined],
  ])('with %j the connection is %s', (types, connection) => {
    const sdl = `type Query { ${paged('notes(%): NotePage')} } type Job { id: ID! } ${PAGES} ${types}`;
    const { types: named, all, why } = list(sdl, 'Query.notes');
    expect([all, named?.connection]).toEqual(['allNotes', connection]);
    if (connection === undefined) {
      expect(why).toContain('Note has no connection: the service has types of its names.');
    }
  });

  test('a record may be null in the connection of a node if one of its lists may have nulls', () => {
    const sdl = `type Query { ${paged('notes(%): NotePage maybe(%): MaybePage')} } type Job { id: ID! }
      type MaybePage { items: [Note]! pageInfo: PageInfo! } ${PAGES}`;
    expect(printSchema(servedOffline(sdl).schema)).toMatch(/type NoteEdge \{[^}]*node: Note\n/);
  });
});

describe('adapters.json', () => {
  const sdl = `type Query { ${paged('notes(%): NotePage jobs(%, cursor: String): JobPage')} one: Note }
    type Job implements Named { name: String nr: Int } interface Named { name: String } ${PAGES}`;
  const PII = { scope: 'pii' };

  test('its keys decide about a list', () => {
    const fields = {
      'Query.jobs': { identity: 'nr', page: 5, after: 'cursor' },
      'Query.notes': { count: 'total' },
    };
    const { adapters } = servedOffline(sdl, { overrides: { fields } });
    expect(adapters).toMatchObject([
      { name: 'notes', count: 'total', identity: 'id' },
      {
        name: 'jobs',
        identity: 'nr',
        page: 5,
        after: { name: 'cursor' },
        connection: { field: 'jobsConnection' },
      },
    ]);
    const skipped = servedOffline(sdl, {
      overrides: { fields: { 'Query.notes': { skip: true } } },
    });
    expect(skipped.adapters.map(({ name }) => name)).toEqual(['jobs']);
  });

  test.each<[object, RegExp]>([
    [[], /is not valid:\n.*expected object/],
    [{ feilds: {} }, /Unrecognized key: "feilds"/],
    [
      { fields: { 'Query.notes': { all: 'x' } } },
      /Unrecognized key: "all"\n.*fields\["Query\.notes"\]/,
    ],
    [
      { fields: { 'Query.nobody': {} } },
      /fields\.Query\.nobody: there is no such list\. The paged lists are: Query\.notes, Query\.jobs/,
    ],
    [{ fields: { 'Query.one': { page: 3 } } }, /fields\.Query\.one: there is no such list/],
    [
      { fields: { 'Query.notes': { after: 'first' } } },
      /this is not a paged list, because first, which adapters\.json names, is not an optional argument/,
    ],
    [
      { fields: { 'Query.notes': { identity: 'nobody' } } },
      /fields\.Query\.notes: Note has no field nobody\. An identity is a scalar field/,
    ],
    [{ fields: { 'Query.notes': { page: 0 } } }, /expected number to be >0/],
    [{ fields: { 'Query.notes': { count: 'items' } } }, /NotePage has no field items: Int/],
    [
      { types: { Nobody: { byId: 'one' } } },
      /types\.Nobody\.byId: there is no object type of that name with a plain field id/,
    ],
    [
      { types: { Note: { byId: 'one' } } },
      /types\.Note\.byId: Query\.one is not a field that returns Note, and requires only its id/,
    ],
    [
      { fields: { 'Note.txet': PII } },
      /Note\.txet: only object types and their fields have scopes/,
    ],
    [{ fields: { 'Query.notes(first:)': PII } }, /Query\.notes\(first:\): only object types/],
    [{ fields: { 'Named.name': PII } }, /Named\.name: .* Write the scope at its types: Job\./],
    [{ types: { Thing: PII } }, /Thing: only object .* Write the scope at its types: Job, Note\./],
    [{ fields: { 'Note.text': { scop: 'pii' } } }, /Unrecognized key: "scop"/],
    [{ fields: { 'Note.text': { scope: 'p ii' } } }, /must be a scope/],
    [{ fields: { 'Note.text': { scope: 'read' } } }, /must not be read, drain, write or router/],
    [
      { fields: { 'Note.text': { ...PII, page: 3 } } },
      /fields\.Note\.text: there is no such list\./,
    ],
  ])('%j is refused', (overrides, mistake) => {
    expect(() => servedOffline(sdl, { overrides })).toThrow(mistake);
  });

  test('all mistakes about the schema are reported at once', () => {
    const overrides = { fields: { 'Query.nobody': {} }, types: { Job: { byId: 'x' } } };
    expect(() => servedOffline(sdl, { overrides })).toThrow(/ has 2 mistakes:/);
  });
});

test.each([
  ['tags(first: Int): TagPage', 'not a list of objects'],
  ['plain: [Note]', 'does not return a page'],
  ['notes(first: Int): NotePage', 'it has no argument after: String'],
  ['notes(first: Int, after: Int): NotePage', 'only cursors of type String or ID can be passed on'],
  ['notes(first: Int, after: String!): NotePage', 'after is required'],
  ['notes(after: String): NotePage', 'it has no argument first: Int'],
  [
    'notes(first: Int, cursorA: String, cursorB: String): NotePage',
    '"fields": { "Query.notes": { "after": "cursorA" } }',
  ],
  ['notes(first: Int, after: String): ArgPage', 'ArgPage.items has required arguments'],
  ['notes(first: Int, after: String): Two', 'several types of Two are pages: NotePage, JobPage'],
  ['notes(first: Int, after: String): IntPage', 'IntInfo.endCursor has the type Int'],
  ['notes(first: Int, after: String): BarePage', 'Bare has no hasNextPage: Boolean'],
])('%s is not derived, and explain says why', (field, why) => {
  const sdl = `type Query { ${field} } type TagPage { items: [String] pageInfo: PageInfo } type Job { id: ID! }
    type ArgPage { items(of: Int!): [Note!]! pageInfo: PageInfo! } union Two = NotePage | JobPage
    type IntPage { items: [Note!]! pageInfo: IntInfo! } type IntInfo { hasNextPage: Boolean! endCursor: Int }
    type BarePage { items: [Note!]! pageInfo: Bare! } type Bare { endCursor: String } ${PAGES}`;
  const report = list(sdl, `Query.${/^\w+/.exec(field)![0]}`);
  expect(report).toMatchObject({ all: null, connection: null });
  expect(report.why[0]).toContain(why);
});

function paged(fields: string): string {
  return fields.replaceAll('%', 'first: Int, after: String');
}

function reports(sdl: string, overrides?: unknown) {
  return servedOffline(sdl, { overrides }).reports;
}

function list(sdl: string, coordinate: string): ListReport {
  return reports(sdl).find(
    (each): each is ListReport => 'list' in each && each.list === coordinate,
  )!;
}

function entity(sdl: string, type: string, overrides?: unknown): EntityReport {
  return reports(sdl, overrides).find(
    (each): each is EntityReport => 'type' in each && each.type === type,
  )!;
}
