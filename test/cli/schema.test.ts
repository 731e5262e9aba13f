import { startService, type Service, type Reply } from '../service/service.ts';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { buildSchema, graphql, introspectionFromSchema } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readConfig } from '../../src/config.ts';
import type { SnapshotSettings } from '../../src/schema/served/served-schema.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { json, refusal, text } from '../service/replies.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const RECRUITING_SCHEMA = folder.file('upstream.graphql');
let service: Service;
let env: Record<string, string>;
beforeAll(async () => {
  service = await startService({ persons: 1 });
  const TOKEN_STORE = `sqlite:${folder.file('store/tokens.db')}`;
  env = { RECRUITING_URL: service.url, RECRUITING_SCHEMA, TOKEN_STORE };
  await runHere(['tokens', 'import', service.tokenLink], env);
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const SNAPSHOT = `
  type Query { person(id: ID!, old: Int @deprecated): Person, at: Day }
  type Person { id: ID!, name: String, stage: Stage }
  enum Stage { NEW }
  scalar Day @specifiedBy(url: "https://example.com/day")
`;
const OF_2016 = SNAPSHOT.replace(', old: Int @deprecated', '').replace(/@specifiedBy.*/, '');
const LIVE =
  'type Query { who: Int, person(id: ID!): Person } type Person { name: String, id: ID! }';
const PULLED = `type Person {
  id: ID!
  name: String
}

type Query {
  person(id: ID!): Person
  who: Int
}
`;
const PULLED_WITHOUT_WHO = PULLED.replace('  who: Int\n', '');
const SAME = /is that of the snapshot/;
const MORE = /^ {2}additive {3}Field 'email' was added to object type 'P/m;
const DESCRIBED = /^ {2}additive {3}Object type 'Person' has description 'Some 31m body'/m;
const LESS = /^ {2}breaking {3}Field 'name' was removed from object/m;
const RETYPED = /^ {2}breaking {3}Field 'Person.name' changed type/m;
const HIRED = /^ {2}dangerous {2}Enum value 'HIRED'/m;
const REFUSED = /refuses introspection/;
const HIDDEN =
  /refuses introspection \(GraphQL introspection is \[2J off\)\. Report this .*by hand/;
const EXPIRED = /has expired\. Run `tokens refresh`; a running gateway does it/;
const CHANGED = /written to .*upstream\.graphql\. To serve it, .*`schema print`/;
const LEFT_OUT =
  /^The schema of the service is used without Query\.who\?: its name is not one of GraphQL, /m;

const live = JSON.stringify({ data: introspectionFromSchema(buildSchema(LIVE)) });
const flawed = json(JSON.parse(live.replace('"who"', '"who?"')));
const hidden = json({ errors: [{ message: 'GraphQL introspection is\u001b[2J off' }] }, 400);

/** Answers introspection as a service with this schema does. */
function introspected(sdl: string, refuses = (_query: string) => false): Reply {
  const schema = buildSchema(sdl);
  return async (response, { body }) => {
    const { query } = JSON.parse(body) as { query: string };
    const refused = { errors: [{ message: 'Cannot query that.' }] };
    json(refuses(query) ? refused : await graphql({ schema, source: query }))(response);
  };
}

/** A service of 2016 refuses introspection of everything added since. */
const isNewSince2016 = (query: string) =>
  /specifiedByURL|isOneOf|isRepeatable|(args|inputFields)\(includeDeprecated|__schema \{\s*description/.test(
    query,
  );

/** Current graphql-java services allow each of these fields once in a document. */
const ONCE = ['__schema', '__type', 'fields', 'inputFields', 'interfaces', 'possibleTypes'];
const isInBadFaith = (query: string) =>
  ONCE.some((field) => query.split(new RegExp(`\\b${field}\\b`)).length > 2);

/** What the service replies to introspection, and what becomes of the command and the snapshot. */
type Introspection = [
  reply: string,
  command: string,
  answer: Reply,
  code: number,
  says: RegExp,
  /** Default: SNAPSHOT, before and after. */
  snapshot?: { readonly before?: string; readonly after?: string },
];

const changed = (part: string, replacement: string) =>
  introspected(SNAPSHOT.replace(part, replacement));

test.each<Introspection>([
  ['the same schema', 'check', introspected(SNAPSHOT), 0, SAME],
  [
    'the same as in 2016',
    'check',
    introspected(OF_2016, isNewSince2016),
    0,
    SAME,
    { before: OF_2016 },
  ],
  [
    'the same, if no field is asked for twice',
    'check',
    introspected(SNAPSHOT, isInBadFaith),
    0,
    SAME,
  ],
  ['a field more', 'check', changed('name: String', 'name: String, email: String'), 0, MORE],
  ['a description', 'check', changed('type P', '"""Some\u009b31m\nbody""" type P'), 0, DESCRIBED],
  ['a field less', 'check', changed('name: String,', ''), 1, LESS],
  ['another type, described', 'check', changed('name: String', '"Of it." name: Int'), 1, RETYPED],
  ['a value more that may be answered', 'check', changed('NEW', 'NEW HIRED'), 1, HIRED],
  ['a refusal of introspection', 'check', hidden, 2, HIDDEN],
  ['half a schema', 'check', json({ data: { __schema: null }, errors: [{}] }), 2, REFUSED],
  ['an empty answer', 'check', json({ data: {} }), 2, /reports a schema that is not valid/],
  ['a page', 'check', text('<html>'), 2, /not GraphQL JSON/],
  ['an expired token', 'check', refusal('token_expired'), 2, EXPIRED],
  ['a revoked token', 'check', refusal('token_revoked'), 2, /demoted or blocked/],
  ['another schema', 'pull', introspected(LIVE), 0, CHANGED, { after: PULLED }],
  ['a flaw that nothing needs', 'pull', flawed, 0, LEFT_OUT, { after: PULLED_WITHOUT_WHO }],
  ['a refusal instead of a schema', 'pull', hidden, 1, REFUSED],
])(
  'the service replies with %s',
  async (_reply, command, answer, code, says, { before = SNAPSHOT, after = before } = {}) => {
    writeFileSync(RECRUITING_SCHEMA, before);
    service.answer(answer);
    const { stdout, stderr, ...exit } = await runHere(['schema', ...command.split(' ')], env);
    expect({ exit, said: stdout + stderr }).toEqual({
      exit: { code },
      said: expect.stringMatching(says),
    });
    if (stdout === '') expect(code).toBeGreaterThan(0);
    expect(readFileSync(RECRUITING_SCHEMA, 'utf8')).toBe(after);
    expect(readdirSync(folder.path)).toEqual(['store', 'upstream.graphql']);
    // A query spends no refresh token: the only exchange is that of the import.
    expect(service.exchanges).toHaveLength(1);
  },
);

test('schema check without tokens ends with exit code 2', async () => {
  writeFileSync(RECRUITING_SCHEMA, SNAPSHOT);
  const TOKEN_STORE = `sqlite:${folder.file('nowhere/tokens.db')}`;
  const { code, stderr } = await runHere(['schema', 'check'], { ...env, TOKEN_STORE });
  expect([code, stderr]).toEqual([2, expect.stringMatching(/no tokens in the token/)]);
});

/** A value of each setting on which the printed SDL depends, other than its default. */
const VARIED: Record<keyof SnapshotSettings, Record<string, string>> = {
  schemaPath: { RECRUITING_SCHEMA: 'schema/rich.graphql' },
  schemaPrefix: { SCHEMA_PREFIX: 'Ats' },
};

test.each(Object.values(VARIED))(
  'schema print --subgraph prints the SDL that is served with %j',
  async (settings) => {
    const printed = await runHere(['schema', 'print', '--subgraph'], settings);
    const { recruitingUrl: _url, tokenLink: _link, ...config } = readConfig(settings, 'server');
    const snapshot = readFileSync(config.schemaPath, 'utf8');
    await using world = await startGatewayOverService({}, { config, snapshot, ownSchema: true });
    const { data } = await world.ask('{ _service { sdl } }');
    expect(data).toEqual({ _service: { sdl: printed.stdout } });
    expect(printed.stdout).not.toBe(readFileSync('schema/subgraph.graphql', 'utf8'));
  },
);

test('schema explain shows each list and each type with an id, and why nothing is derived from it', async () => {
  const sdl = `type Query {
      notes(first: Int, after: String): PersonConnection! team(id: ID!): Team
    }
    type Person { id: ID! }
    type Team { id: ID! members(first: Int, after: String): PersonConnection! }
    type PersonConnection { items: [Person!]! pageInfo: PageInfo! }
    type PageInfo { hasNextPage: Boolean! endCursor: String }`;
  // Whether a company adds the second one is not known here.
  const fields = { 'Query.notes': { skip: true }, 'Person.added': { scope: 'pii' } };
  expect(await explain(sdl, { fields })).toBe(`Query.notes
  why         adapters.json skips it.

Team.members
  all         allMembers
  connection  membersConnection (RelayPersonConnection, RelayPersonEdge)
  parent      reached again by team(id: …)
  why         it takes first and after, and returns pages of Person.

Person
  entity      cannot be found by its id
  why         no root field returns the type by its id alone, and it is in no derived list of the root that needs no arguments and is identified by id.

Team
  entity      found by Query.team(id: …)
  why         the field returns the type by its id.
`);
});

/** @param adapters the content of adapters.json */
async function explain(sdl: string, adapters: object = {}) {
  using own = temporaryFolder();
  writeFileSync(own.file('upstream.graphql'), sdl);
  writeFileSync(own.file('adapters.json'), JSON.stringify(adapters));
  const { code, stdout, stderr } = await runHere(['schema', 'explain'], {
    RECRUITING_SCHEMA: own.file('upstream.graphql'),
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}
