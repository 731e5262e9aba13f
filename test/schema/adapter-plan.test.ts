import { buildSchema } from 'graphql';
import { expect, test } from 'vitest';
import { planAdapters, type ListReport } from '../../src/schema/derivation/adapters.ts';
import { rootNames } from '../../src/schema/names.ts';
import { fullSdl } from '../support/imitations/honest.ts';

const PAGES = `
  type Note { id: ID! text: String }
  type NotePage { items: [Note!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
`;

test.each([
  ['the field named like the type', 'aaa(id: ID!): Job job(id: ID!): Job', 'job(id: …)'],
  ['then the shortest name', 'jobById(id: ID!): Job getJob(id: ID!): Job!', 'getJob(id: …)'],
  ['then the alphabet', 'bJob(id: ID!): Job aJob(id: ID!): Job', 'aJob(id: …)'],
  ['one with options as well', 'job(id: ID!, draft: Boolean): Job', 'job(id: …)'],
  ['by id before a path', 'my: Job job(id: ID!): Job', 'job(id: …)'],
  ['not by an id of another type', 'job(id: Int!): Job my: Job', 'my, if'],
  ['not where more is required', 'job(id: ID!, year: Int!): Job my: Job', 'my, if'],
  ['not where the id may be left out', 'job(id: ID): Job my(year: Int): Job', 'job, if'],
  ['the shortest path', 'a: Holder my: Job', 'my, if'],
  ['then the alphabet of paths', 'z: Job b: Job', 'b, if'],
  ['a path through objects', 'a: Holder', 'a { job }, if'],
  ['a path through a result', 'a: HolderResult', 'a { job }, if'],
  ['a path to a result', 'my: JobResult', 'my, if'],
  ['no path through lists', 'many: [Holder] a(x: Int!): Holder', null],
  ['no path through a result with several objects', 'a: Several', null],
])('a parent is reached again by %s', (_, fields, parent) => {
  const sdl = `type Query { ${fields} } type Holder { job: Job }
    union HolderResult = Holder | HolderError type HolderError { message: String! }
    union JobResult = Job | JobError type JobError { id: ID! code: String }
    union Several = Holder | Other type Other { name: String }
    type Job { id: ID! notes(first: Int, after: String): NotePage! }`;
  const report = reportOf(sdl + PAGES, 'Job.notes');
  if (parent === null) {
    expect(report).toMatchObject({ parent, all: null, connection: null });
    if (fields.includes('Several')) {
      expect(report.why.join()).toContain(
        'the path a.job leads to one, but a returns Several, of which several types are no errors (Holder, Other).',
      );
    }
  } else {
    expect(report.parent).toContain(parent);
    expect(report).toMatchObject({ all: 'allNotes', connection: 'notesConnection' });
  }
});

test('without ids a path leads to a parent only if no field returns another of its type', () => {
  const settings = 'type Settings { notes(first: Int, after: String): NotePage! }';
  const viewer = `type Viewer { settings: Settings } ${settings}`;
  expect(settingsNotes(`type Query { viewer: Viewer } ${viewer}`).parent).toBe(
    'viewer { settings }',
  );
  for (const elsewhere of [
    `type Query { viewer: Viewer old: [Settings] } ${viewer}`,
    `type Query { viewer: Viewer viewers: [Viewer] } ${viewer}`,
    `type Query { viewer(as: ID): Viewer } ${viewer}`,
    `type Query { viewer: Viewer any: [Any] } union Any = Settings | Note ${viewer}`,
  ]) {
    expect(settingsNotes(elsewhere), elsewhere).toMatchObject({ all: null, parent: null });
    expect(settingsNotes(elsewhere).why[0]).toContain('cannot be distinguished');
  }
});

test('our own arguments are renamed if a filter has their name', () => {
  const sdl = `type Query {
    notes(first: Int, after: String, limit: Int, last: Int, connectionLast: Int, before: Int): NotePage!
    others(first: Int, after: String): NotePage!
  }`;
  const { adapters } = planned(sdl + PAGES);
  expect(adapters[0]).toMatchObject({
    all: { limit: 'drainLimit', after: 'after' },
    connection: { last: 'connectionLast_', before: 'connectionBefore' },
  });
  expect(adapters[1]).toMatchObject({
    all: { limit: 'limit' },
    connection: { last: 'last', before: 'before' },
  });
});

test.each([
  ['Connection', 'type NoteConnection { text: String }', 'NoteConnection'],
  ['Edge', 'type NoteEdge { text: String }', 'NoteEdge'],
  ['a page that is called a connection', '', 'NoteConnection'],
])(
  'connection types are named Relay… if the service has a type of their name: %s',
  (_, type, taken) => {
    const page = type === '' ? 'NoteConnection' : 'NotePage';
    const sdl = `type Query { notes(first: Int, after: String): ${page}! } ${type}`;
    const { adapters, reports, warnings } = planned(sdl + PAGES.replaceAll('NotePage', page));
    expect(adapters[0]!.connection).toMatchObject({
      field: 'notesConnection',
      type: 'RelayNoteConnection',
      edge: 'RelayNoteEdge',
    });
    expect(reports[0]).toMatchObject({
      types: { connection: 'RelayNoteConnection', edge: 'RelayNoteEdge' },
      why: expect.arrayContaining([`The service already has a type ${taken}.`]),
    });
    expect(warnings).toEqual([]);
  },
);

test('all lists of one kind of record share their connection types, even under such a name', () => {
  const sdl = `type Query {
    notes(first: Int, after: String): NotePage! others(first: Int, after: String): NotePage!
    maybe(first: Int, after: String): MaybePage!
    a: RelayNoteEdge b: NoteConnection
  }
  type MaybePage { items: [Note]! pageInfo: PageInfo! }
  type RelayNoteEdge { text: String } type NoteConnection { text: String }`;
  const { adapters } = planned(sdl + PAGES);
  expect(adapters.map(({ connection }) => connection!.type)).toEqual([
    'RelayRelayNoteConnection',
    'RelayRelayNoteConnection',
    'NullableNoteConnection',
  ]);
});

test('adapters.json names the types of connections, even for interfaces and unions', () => {
  const sdl = `type Query {
    notes(first: Int, after: String): NotePage! maybe(first: Int, after: String): MaybePage!
    any(first: Int, after: String): AnyPage!
  }
  type MaybePage { items: [Note]! pageInfo: PageInfo! }
  type AnyPage { items: [Any!]! pageInfo: PageInfo! } union Any = Note`;
  const { adapters } = planned(sdl + PAGES, {
    types: {
      Note: { connection: 'NotesConnection', edge: 'NotesEdge' },
      Any: { connection: 'EverythingConnection' },
    },
  });
  expect(adapters.map(({ connection }) => [connection!.type, connection!.edge])).toEqual([
    ['NotesConnection', 'NotesEdge'],
    ['NullableNotesConnection', 'NullableNotesEdge'],
    ['EverythingConnection', 'AnyEdge'],
  ]);
});

test.each([
  [
    { Note: { connection: 'Notes' } },
    /types\.Note\.connection: Notes does not end with Connection/,
  ],
  [
    { Note: { connection: 'TakenConnection' } },
    /types\.Note\.connection: a type TakenConnection already exists\. Write another name/,
  ],
  [{ Note: { edge: 'PageInfo' } }, /types\.Note\.edge: a type PageInfo already exists/],
  [{ Note: { edge: '_Any' } }, /types\.Note\.edge: a type _Any already exists/],
  [
    { Note: { connection: 'XConnection' }, Tag: { connection: 'XConnection' } },
    /types\.Tag\.connection: a type XConnection already exists/,
  ],
  [
    { TakenConnection: { edge: 'X' } },
    /types\.TakenConnection\.edge: no paged field lists TakenConnection in a connection\. Remove it/,
  ],
  [{ Any: { byId: 'notes' } }, /types\.Any: there is no object type of that name/],
])('impossible names of connection types are refused: %j', (types, mistake) => {
  const sdl = `type Query {
    notes(first: Int, after: String): NotePage! tags(first: Int, after: String): TagPage!
    taken: TakenConnection any: Any
  }
  type Tag { id: ID! } type TagPage { items: [Tag!]! pageInfo: PageInfo! }
  type TakenConnection { text: String } union Any = Note`;
  expect(() => planned(sdl + PAGES, { types })).toThrow(mistake);
});

test('interfaces, plain lists and lists of values that look paged are explained too', () => {
  const sdl = `
    type Query { tags(first: Int): TagPage plain: [Note] any: HasNotes one: Int }
    type TagPage { items: [String] pageInfo: PageInfo }
    interface HasNotes { notes(first: Int, after: String): NotePage! }
  `;
  const { reports, adapters, nested } = planned(sdl + PAGES);
  expect({ adapters, nested }).toEqual({ adapters: [], nested: [] });
  expect(reports.map(({ list, why }) => [list, why[0]])).toEqual([
    ['Query.tags', expect.stringContaining('not a list of objects')],
    ['Query.plain', expect.stringContaining('does not return a page')],
    ['HasNotes.notes', expect.stringContaining('is an interface')],
  ]);
});

test('adapters.json skips, renames and names the by-id field', () => {
  const { adapters, nested, reports } = plan({
    fields: {
      'Query.named': { skip: true },
      'Query.vacancies': { connection: 'jobs' },
      'Vacancy.candidates': { all: 'everybody' },
    },
    types: {
      Vacancy: { byId: 'theVacancy' },
      Candidate: { byId: null },
      Agency: { byId: 'agencyCalled' },
    },
  });
  expect(adapters.map(({ all, connection }) => [all?.field, connection?.field])).toEqual([
    ['allCandidates', 'candidatesConnection'],
    ['allActiveCandidates', 'activeCandidatesConnection'],
    ['allVacancies', 'jobs'],
    [undefined, 'openingsConnection'],
    ['allApplicants', 'applicantsConnection'],
    ['allEvents', undefined],
  ]);
  const reported = (list: string) => reports.find((report) => report.list === list);
  expect(reported('Query.named')).toMatchObject({ all: null, why: ['adapters.json skips it.'] });
  expect(reported('Vacancy.candidates')).toMatchObject({
    all: 'everybody',
    parent: 'theVacancy(id: …)',
    why: expect.arrayContaining(['adapters.json names it.']),
  });
  expect(reported('Agency.offices')).toMatchObject({ parent: 'agencyCalled(label: …)' });
  expect(reported('Candidate.history')).toMatchObject({ all: null });
  expect(nested.map(({ parent }) => parent)).not.toContain('Candidate');
});

test('all mistakes in adapters.json are reported at once, with what to write instead', () => {
  const mistakes = mistakesOf({
    feilds: {},
    fields: {
      'Query.persons': {},
      'Vacancy.lead': {},
      'Query.vacancies': { all: 'named', connection: 'named' },
      'Vacancy.candidates': { all: 'allRelated' },
      'Vacancy.fragile': { connection: 'candidates' },
      'Vacancy.related': { connection: 'candidates', identity: 'nobody' },
    },
    types: {
      Nobody: { byId: 'x' },
      Event: { byId: 'vacancy' },
      Vacancy: { byId: 'missing' },
      Candidate: { byId: 'vacancy' },
      Company: { byId: null },
    },
  });
  for (const mistake of [
    /The file: "feilds" is unknown\. Write "fields" and "types"/,
    /fields\.Query\.persons: there is no such list\. Write one of Query\.candidates, Query\.activeCandidates, /,
    /fields\.Vacancy\.lead: there is no such list/,
    /fields\.Query\.vacancies\.all: Query already has named\. Write another name/,
    /fields\.Query\.vacancies\.connection: Query already has named/,
    /fields\.Vacancy\.candidates\.all: Vacancy already has allRelated/,
    /fields\.Vacancy\.fragile\.connection: it gets no connection, because Event has no plain field id\. Remove it, or write what identifies its records: "fields": { "Vacancy\.fragile": { "identity": "at" } }/,
    /fields\.Vacancy\.related\.connection: Vacancy already has candidates/,
    /fields\.Vacancy\.related\.identity: Candidate has no field nobody\. Write the name of a scalar field, such as id/,
    /types\.Nobody: there is no object type of that name/,
    /types\.Event\.byId: Event has no plain field id/,
    /types\.Vacancy\.byId: there is no Query\.missing/,
    /types\.Candidate\.byId: Query\.vacancy returns Vacancy\. Write one that returns Candidate/,
  ]) {
    expect(mistakes).toMatch(mistake);
  }
  expect(mistakes).toMatch(/^adapters\.json, beside the schema snapshot, has 14 mistakes:/);
});

test.each([
  [[], /has a mistake:\n- The file: .*object/],
  [
    { fields: { 'Query.named': { all: '1x' } } },
    /fields\.Query\.named\.all: must be a GraphQL name/,
  ],
  [{ fields: { 'Query.named': { all: '_rsX' } } }, /begins neither with __ nor _rs/],
  [
    { fields: { 'Query.named': { skipp: true } } },
    /"skipp" is unknown\. Write "skip", "all", "connection", "page", "identity", "count", "member", "after" and "scope"/,
  ],
  [{ types: { Vacancy: { by: 1 } } }, /types\.Vacancy: "by" is unknown\. Write "byId"/],
])('a file of another shape is refused: %j', (json, message) => {
  expect(mistakesOf(json)).toMatch(message);
});

function settingsNotes(sdl: string): ListReport {
  return reportOf(sdl + PAGES, 'Settings.notes');
}

function plan(json?: unknown) {
  return planned(fullSdl, json);
}

function mistakesOf(json: unknown): string {
  try {
    plan(json);
    return '';
  } catch (error) {
    return (error as Error).message;
  }
}

function reportOf(sdl: string, list: string): ListReport {
  return planned(sdl).reports.find((report) => report.list === list)!;
}

function planned(sdl: string, json?: unknown) {
  const schema = buildSchema(sdl);
  return planAdapters(schema, rootNames(schema, ''), json);
}
