import { printSchema } from 'graphql';
import { expect, test } from 'vitest';
import type { Report } from '../../src/schema/derived.ts';
import { servedOffline } from '../support/gateway/served.ts';

/** `%` stands for the arguments of a paged list. */
const TYPES = `
  type Note { id: ID! text: String }
  type Plain { text: String }
  type Job implements Named { id: ID! name: String nr: Int note: Note tags: [String] done: Boolean sized(by: Int!): Int }
  type Desk { id: ID! notes(%): NotePage! }
  type Holder { desk: Desk }
  type Brick implements Wall { notes(%): NotePage! }
  type Failure { code: String }
  type News { id: ID! message: String }
  type AllNotes { id: ID! }
  type HRJob { id: ID! }
  type hrJob { id: ID! }
  interface Named { name: String }
  interface Wall { notes(%): NotePage! }
  type Locked { message: String! }
  type Rejected { id: ID! }
  union DeskResult = Desk | Failure
  union DeskOrHolder = Desk | Holder
  union DeskOrNews = Desk | News
  union JobResult = Job | Failure | Locked
  union JobOrOther = Job | Rejected
  union Two = NotePage | JobPage
  union Thing = Job | Note
  union Mixed = Note | Plain
  union Refusing = Rejected | Plain
  input Where { id: ID }
  type NotePage { items: [Note!]! pageInfo: PageInfo! total: Int sized(by: Int!): Int }
  type MaybePage { items: [Note]! pageInfo: PageInfo! }
  type PlainPage { items: [Plain!]! pageInfo: PageInfo! }
  type JobPage { items: [Job!]! pageInfo: PageInfo! }
  type RejectedPage { items: [Refusing!]! pageInfo: PageInfo! }
  type ThingPage { items: [Thing!]! pageInfo: PageInfo! }
  type MixedPage { items: [Mixed!]! pageInfo: PageInfo! }
  type AllNotesPage { items: [AllNotes!]! pageInfo: PageInfo! }
  type HRJobPage { items: [HRJob!]! pageInfo: PageInfo! }
  type hrJobPage { items: [hrJob!]! pageInfo: PageInfo! }
  type TagPage { items: [String] pageInfo: PageInfo }
  type ArgPage { items(of: Int!): [Note!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }`;

/** @param query the fields of Query; other types may follow behind its brace */
function serve(query: string, overrides?: unknown) {
  const sdl = `type Query { ${query} } ${TYPES}`.replaceAll('%', 'first: Int, after: String');
  return servedOffline(sdl, { overrides });
}

/** What `schema explain` says, by list or type. */
function explained(query: string, overrides?: unknown): Record<string, Report> {
  const { reports } = serve(query, overrides);
  return Object.fromEntries(reports.map((each) => [each.subject, each]));
}

const summary = ({ facts, why }: Report) => [...Object.values(facts), ...why].join(' ');

test.each([
  ['by the shortest name', 'aDeskById(id: ID!): Desk getDesk(id: ID!): Desk!', 'getDesk(id: …)'],
  ['by the first of the alphabet', 'bDesk(id: ID!): Desk aDesk(id: ID!): Desk', 'aDesk(id: …)'],
  ['by a field that takes options', 'desk(id: ID!, draft: Boolean): Desk', 'desk(id: …)'],
  ['by a field that returns a result', 'desk(id: ID!): DeskResult', 'desk(id: …)'],
  ['by a result beside a type without an id', 'desk(id: ID!): DeskOrHolder', 'desk(id: …)'],
  ['before a result', 'desk(id: ID!): DeskResult deskById(id: ID!): Desk', 'deskById(id: …)'],
  ['by an id alone', 'desk(id: ID!, of: Int!): Desk deskById(id: ID!): Desk', 'deskById(id: …)'],
  ['not by an id of another type', 'desk(id: Int!): Desk', null],
  ['not where more is required', 'desk(id: ID!, of: Int!): Desk', null],
  ['not where the id may be left out', 'desk(id: ID): Desk', null],
  ['not by a result with another record', 'desk(id: ID!): DeskOrNews', null],
  ['not by a path without an id', 'holder: Holder', null],
])('a nested list is derived where its parent is reached again, %s', (_, query, parent) => {
  const hint = parent === null ? '"types": { "Desk": { "byId": "…" } }' : 'first and after';
  const { 'Desk.notes': report } = explained(query);
  expect(report!.facts).toEqual(
    parent === null
      ? {}
      : {
          all: 'allNotes',
          connection: 'notesConnection (NoteConnection, NoteEdge)',
          parent: `reached again by ${parent}`,
        },
  );
  expect(summary(report!)).toContain(hint);
  // The name is Relay's, though all lists are nested.
  expect(serve(query).schema.getType('UpstreamPageInfo')).toBeDefined();
});

const byId = (field: string | null) => ({ types: { Job: { byId: field } } });

type Found = [
  string,
  string,
  foundBy: string | null,
  field?: string | undefined,
  overrides?: object,
];

test.each<Found>([
  ['by its id, before any list', 'job(id: ID!): Job jobs(%): JobPage', 'job(id: …)'],
  ['without required arguments', 'a(%, of: Int!): JobPage jobs(%): JobPage', 'jobs', 'job'],
  ['in a list of its own type', 'a(%): ThingPage jobs(%): JobPage', 'jobs', 'job'],
  ['in the list with the shortest name', 'aJobs(%): JobPage jobs(%): JobPage', 'jobs', 'job'],
  ['in the first list of the alphabet', 'jobs2(%): JobPage jobs1(%): JobPage', 'jobs1', 'job'],
  ['in a list of several types', 'things(%): ThingPage', 'things', 'job'],
  ['without a field if its name is taken', 'job: Int jobs(%): JobPage', 'jobs'],
  ['by a result, without a field', 'job(id: ID!): JobResult', 'job(id: …)'],
  ['by a result of another name', 'find(id: ID!): JobResult', 'find(id: …)', 'job'],
  ['not by a result of two types on pages', 'job(id: ID!): JobOrOther r(%): RejectedPage', null],
  ['not where more is required', 'jobs(%, of: Int!): JobPage', null],
  ['not below a record', 'a(id: ID!): A } type A { id: ID! jobs(%): JobPage', null],
  ['by adapters.json', 'a: Job find(key: ID!): Job', 'find(key: …)', undefined, byId('find')],
  ['by its optional id', 'a: Job find(id: ID): Job', 'find(id: …)', undefined, byId('find')],
  ['by its result', 'find(key: Int!): JobResult', 'find(key: …)', 'job', byId('find')],
  ['not by its id there', 'job(id: ID!): Job jobs(%): JobPage', 'jobs', undefined, byId(null)],
  [
    'not in a list that another field identifies',
    'jobs(%): JobPage',
    null,
    undefined,
    { fields: { 'Query.jobs': { identity: 'nr' } } },
  ],
])('a record is found %s', (_, query, foundBy, field, overrides) => {
  const { Job } = explained(query, overrides);
  expect(Job!.facts).toEqual({
    entity: foundBy === null ? 'cannot be found by its id' : `found by Query.${foundBy}`,
    field,
  });
});

test('of a result, all types but the record are errors', () => {
  const query = 'job(id: ID!): JobResult jobs(%): JobPage';
  expect(summary(explained(query)['Job']!)).toContain(
    'Job is one of the types of JobResult; Failure is an error; Locked is an error.',
  );
  // Its name is taken by the field that returns it.
  expect(serve(query).warnings).toEqual([]);
});

test('an id with arguments, and one that is a Boolean or an object, is no key', () => {
  const query = `id: ID } type Flag { id: Boolean! } type Held { id: Plain }
    type Asked { id(as: String): ID! } type Given { id(as: String!): ID!`;
  const sdl = serve(query).subgraphSdl();
  expect(sdl).toContain('type News @key(fields: "id", resolvable: false)');
  for (const type of ['Query', 'Flag', 'Held', 'Asked', 'Given']) {
    expect(sdl).toContain(`type ${type} {`);
  }
});

const CLASH = 'is not derived: a field of that name already exists.';

/** What is said of a list or a type; nothing of what is none. */
test.each([
  ['x(first: Int, startAfter: String, of: Int): NotePage', 'Query.x', 'takes first and startAfter'],
  ['x(first: Int, after: ID): NotePage', 'Query.x', 'allX xConnection '],
  ['x(first: Int!, after: String): NotePage', 'Query.x', 'allX xConnection '],
  ['x(first: Int, cursorId: Int, cursor: String): NotePage', 'Query.x', 'takes first and cursor,'],
  ['x(%): PlainPage', 'Query.x', '"fields": { "Query.x": { "identity": "…" } }'],
  ['x(%): MixedPage', 'Query.x', 'xConnection (MixedConnection'],
  ['wall: Wall', 'Wall.notes', undefined],
  ['x(%): NotePage', 'NotePage.items', undefined],
  ['a: Int } type Mutation { x(%): NotePage', 'Mutation.x', undefined],
  ['x(%): NotePage allX: Int', 'Query.x', `Query.allX ${CLASH}`],
  ['x(%): NotePage X(%): NotePage', 'Query.X', `Query.allX ${CLASH}`],
  ['x(%): AllNotesPage notes(%): NotePage', 'AllNotes', `Query.allNotes ${CLASH}`],
  ['a(%): HRJobPage b(%): hrJobPage', 'hrJob', `Query.hrJob ${CLASH}`],
  ['x(%): NotePage', 'Query.x', 'allX xConnection (NoteConnection'],
  ['x(%): NotePage } type NoteConnection { a: Int', 'Query.x', 'RelayNoteConnection'],
  ['x(%): NotePage } type NoteEdge { a: Int', 'Query.x', 'RelayNoteConnection'],
  [
    'x(%): NotePage } type NoteEdge { a: Int } type RelayNoteEdge { a: Int',
    'Query.x',
    'Note has no connection: the service has types of its names.',
  ],
])('with %s, explain says of %s: %s', (query, place, says) => {
  const { [place]: report } = explained(query);
  if (says === undefined) expect(report).toBeUndefined();
  else expect(summary(report!)).toContain(says);
});

const bare = (fields: string) =>
  `x(%): BarePage } type BarePage { items: [Note!]! pageInfo: Bare! } type Bare { ${fields}`;

test.each([
  ['x(first: Int): TagPage', 'does not return a page'],
  ['x: [Note]', 'does not return a page'],
  ['x(after: String): Job', 'does not return a page'],
  ['x(%): Bare } type Bare { items: [Note]', 'does not return a page'],
  ['x(first: Int): NotePage', 'it has no optional argument after: String'],
  ['x(first: Int, cursor: ID): NotePage', 'it has no optional argument after: String'],
  ['x(first: Int, after: Int): NotePage', 'it has no optional argument after: String'],
  ['x(first: Int, after: String!): NotePage', 'it has no optional argument after: String'],
  ['x(after: String): NotePage', 'it has no argument first: Int'],
  ['x(first: Float, after: String): NotePage', 'it has no argument first: Int'],
  ['x(first: Int, beforeCursor: String): NotePage', 'it has no optional argument after'],
  ['x(first: Int, cursorA: String, cursorB: String): NotePage', '{ "after": "cursorA" }'],
  ['x(%, last: Int!): NotePage', 'its required argument last is called as one of the gateway'],
  ['x(%): ArgPage', 'does not return a page'],
  ['x(%): Two', 'several types of Two are pages: NotePage, JobPage'],
  [bare('hasNextPage: Boolean! endCursor: Int'), 'Only cursors of type String or ID'],
  [bare('hasNextPage: Int endCursor: String'), 'pageInfo: { hasNextPage: Boolean'],
  [bare('endCursor: String'), 'pageInfo: { hasNextPage: Boolean'],
  [bare('hasNextPage: Boolean'), 'endCursor: String }'],
])('%s is not derived, and explain says why', (query, why) => {
  const { 'Query.x': report } = explained(query);
  expect(report!.facts).toEqual({});
  expect(summary(report!)).toContain(why);
});

test('a filter that is called as an argument of the gateway is left out, and explain says so', () => {
  const query = 'notes(%, limit: Int, last: Int, before: Int, of: Int): NotePage';
  const { allNotes, notesConnection } = serve(query).schema.getQueryType()!.getFields();
  expect([allNotes, notesConnection].map((field) => field!.args.map(({ name }) => name))).toEqual([
    ['limit', 'after', 'of'],
    ['first', 'after', 'last', 'before', 'of'],
  ]);
  const why = 'its filter limit is left out';
  expect(summary(explained(query)['Query.notes']!)).toContain(why);
});

test('fields that are derived have the types and descriptions of what they are derived from', () => {
  const query = `notes(%, "Only these." of: Int): NotePage maybe(%): MaybePage find(key: Int!): JobResult`;
  const sdl = printSchema(serve(query, byId('find')).schema);
  for (const part of [
    // A record may be null in the connection of a node if one of its lists may have nulls.
    /type NoteEdge \{[^}]*node: Note\n/,
    /allMaybe\([^)]*\): \[Note\]\n/,
    /allNotes\([^)]*"""Only these\."""\s+of: Int/,
    /job\([^)]*id: Int!\s+\): Job/,
  ]) {
    expect(sdl).toMatch(part);
  }
});

const LISTS = `notes(%): NotePage jobs(%, cursor: String): JobPage one: Note
  job(id: ID!): Job by(where: Where!): Job two(a: ID!, b: ID!): Job`;

test('the keys of adapters.json decide about a list', () => {
  const fields = {
    'Query.jobs': { identity: 'nr', page: 5, after: 'cursor' },
    'Query.notes': { count: 'total' },
  };
  expect(serve(LISTS, { fields }).adapters).toMatchObject([
    { name: 'notes', count: 'total', identity: 'id' },
    { name: 'jobs', identity: 'nr', page: 5, after: { name: 'cursor' } },
  ]);
  const { adapters } = serve(LISTS, { fields: { 'Query.notes': { skip: true } } });
  expect(adapters.map(({ name }) => name)).toEqual(['jobs']);
});

const PII = { scope: 'pii' };
const ofField = (field: string, override: object) => ({ fields: { [field]: override } });
const ofJobs = (override: object) => ofField('Query.jobs', override);

const ofType = (type: string, byIdField: string) => ({ types: { [type]: { byId: byIdField } } });

test.each<[overrides: object, says: string]>([
  [{ feilds: {} }, '→ at feilds'],
  [ofJobs({ all: 'x' }), '→ at fields.Query.jobs.all'],
  [
    ofField('Query.nobody', { skip: true }),
    'Query.nobody: nothing is derived from it, because there is no such',
  ],
  [ofField('Query.one', { page: 3 }), 'fields.Query.one: nothing is derived from it'],
  [ofJobs({ after: 'first' }), 'because first, which adapters.json names, is not an optional'],
  ...['nobody', 'sized', 'tags', 'note', 'done'].map((identity): [object, string] => [
    ofJobs({ identity }),
    `${identity}, which adapters.json names, is not a scalar field of Job`,
  ]),
  [ofJobs({ page: 0 }), 'Expected >=1 but received 0\n  → at fields.Query.jobs.page'],
  [ofField('Query.notes', { count: 'items' }), 'NotePage has no field items: Int'],
  [ofField('Query.notes', { count: 'sized' }), 'NotePage has no field sized: Int'],
  [ofType('Nobody', 'one'), 'types.Nobody.byId: Query.one does not return Nobody by its id alone.'],
  [ofType('Plain', 'one'), 'Query.one does not return Plain'],
  [ofType('Note', 'one'), 'Query.one does not return Note'],
  [ofType('Note', 'job'), 'Query.job does not return Note'],
  [ofType('Job', 'by'), 'Query.by does not return Job'],
  [ofType('Job', 'two'), 'Query.two does not return Job'],
  [ofField('Note.txet', PII), 'Note.txet: only object types and their fields have scopes'],
  [ofField('Named.name', PII), 'Named.name: only object types'],
  [{ types: { Thing: PII } }, 'Thing: only object types'],
  [ofField('Note.text', { scop: 'pii' }), '→ at fields.Note.text.scop'],
  [ofField('Note.text', { scope: '' }), '→ at fields.Note.text.scope'],
  [ofField('Note.text', { ...PII, page: 3 }), 'fields.Note.text: nothing is derived from it'],
  [{ ...ofField('Query.nobody', {}), ...ofType('Job', 'x') }, ' has 2 mistakes:'],
])('adapters.json with %j is refused', (overrides, says) => {
  expect(() => serve(LISTS, overrides)).toThrow(says);
});
