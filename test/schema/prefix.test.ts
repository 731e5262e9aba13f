import { isSpecifiedScalarType, Kind, parse, printSchema, visit } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { idOf } from '../../sandbox/person-list.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { fullSdl, fullService } from '../support/imitations/honest.ts';
import { servedOffline } from '../support/gateway/served-offline.ts';

type World = Awaited<ReturnType<typeof startGatewayOverSandbox>>;

let people: World;
let rich: World;
beforeAll(async () => {
  const schemaPrefix = 'Recruiting';
  people = await startGatewayOverSandbox({}, { config: { schemaPrefix } });
  rich = await startGatewayOverSandbox(
    { schema: fullService().schema },
    { snapshot: fullSdl, config: { schemaPrefix, mutations: ['rename'] } },
  );
});
afterAll(async () => {
  await people[Symbol.asyncDispose]();
  await rich[Symbol.asyncDispose]();
});

const OF_FEDERATION = ['_Any', '_Entity', '_Service', '_entities', '_service'];

test('every type that is not built in has the prefix, and every root field, including Relay’s and the derived ones', () => {
  const { schema } = rich.gateway.served;
  const roots = [schema.getQueryType()!, schema.getMutationType()!];
  const types = Object.values(schema.getTypeMap())
    .filter((type) => !isSpecifiedScalarType(type) && !type.name.startsWith('__'))
    .filter((type) => !roots.includes(type as never) && !OF_FEDERATION.includes(type.name));
  expect(types.filter(({ name }) => !name.startsWith('Recruiting'))).toEqual([]);
  expect(types.map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      'RecruitingPageInfo',
      'RecruitingUpstreamPageInfo',
      'RecruitingCandidateConnection',
      'RecruitingCandidateEdge',
      'RecruitingDateTime',
      'RecruitingVacancyBy',
      'RecruitingStage',
    ]),
  );
  const fields = roots.flatMap((root) => Object.keys(root.getFields()));
  expect(fields.filter((name) => !/^recruiting[A-Z]/.test(name))).toEqual([
    '_service',
    '_entities',
  ]);
  expect(fields).toEqual(
    expect.arrayContaining([
      'recruitingCandidates',
      'recruitingAllCandidates',
      'recruitingCandidatesConnection',
      'recruitingRobot',
      'recruitingRename',
    ]),
  );
});

test('lists, connections, records by id and entities work with a prefix, with fragments and __typename', async () => {
  const { data, errors } = await people.ask(
    `query ($representations: [_Any!]!) {
      __typename
      recruitingPersons(first: 1) { __typename items { ...Person } pageInfo { __typename first } }
      all: recruitingAllPersons(limit: 1) { ...Person }
      recruitingPersonsConnection(first: 1) {
        __typename
        edges { __typename node { ...Person } }
        pageInfo { __typename hasNextPage }
      }
      recruitingPerson(id: "${idOf(0)}") { ...Person }
      _entities(representations: $representations) { ...Person ... on RecruitingPerson { i: id } }
    }
    fragment Person on RecruitingPerson { __typename id ...{ t: __typename } }`,
    {
      representations: [
        { __typename: 'RecruitingPerson', id: idOf(0) },
        { __typename: 'Person', id: idOf(0) },
      ],
    },
  );
  const person = { __typename: 'RecruitingPerson', id: idOf(0), t: 'RecruitingPerson' };
  expect(data).toEqual({
    __typename: 'Query',
    recruitingPersons: {
      __typename: 'RecruitingPersonPage',
      items: [person],
      pageInfo: { __typename: 'RecruitingUpstreamPageInfo', first: 1 },
    },
    all: [person],
    recruitingPersonsConnection: {
      __typename: 'RecruitingPersonConnection',
      edges: [{ __typename: 'RecruitingPersonEdge', node: person }],
      pageInfo: { __typename: 'RecruitingPageInfo', hasNextPage: true },
    },
    recruitingPerson: person,
    _entities: [{ ...person, i: idOf(0) }, null],
  });
  expect(errors).toMatchObject([
    { path: ['_entities', 1], message: expect.stringContaining('no entity Person here') },
  ]);
});

test('MUTATIONS uses the service’s names of mutations', async () => {
  const rename = 'recruitingRename(id: 3, name: "New") { __typename name }';
  const { data, errors } = await rich.ask(`mutation { ${rename} }`);
  expect(errors).toBeUndefined();
  expect(data).toEqual({ recruitingRename: { __typename: 'RecruitingCandidate', name: 'New' } });
  const before = rich.sandbox.stats.requests.graphql;
  const refused = await rich.ask(
    `mutation { ${rename} recruitingHire(candidate: 1, vacancy: 1) { __typename } }`,
  );
  expect(refused.data).toBeUndefined();
  expect(refused.errors).toMatchObject([
    { message: expect.stringContaining('recruitingHire'), extensions: { code: 'FORBIDDEN' } },
  ]);
  expect(rich.sandbox.stats.requests.graphql).toBe(before);
});

test.each([
  ['HR', 'HRPerson', 'hrAllPersons'],
  ['HRTool', 'HRToolPerson', 'hrToolAllPersons'],
  ['rec_', 'rec_Person', 'rec_AllPersons'],
  ['Ats2', 'Ats2Person', 'ats2AllPersons'],
])('the prefix %s gives the type %s and the field %s', (prefix, type, field) => {
  const sdl = printSchema(served(PERSONS, prefix).schema);
  expect(sdl).toContain(`type ${type} {`);
  expect(sdl).toContain(`${field}(`);
});

test('two root fields that get the same name by a prefix are refused', () => {
  const sdl = 'type Query { Persons: Int persons: Int }';
  expect(() => served(sdl, 'Recruiting')).toThrow(/Choose another prefix/);
});

test('a prefix that leads to a name which the service already has is refused', () => {
  const sdl =
    'type Query { a: Person b: RecruitingPerson } type Person { a: Int } type RecruitingPerson { b: Int }';
  expect(() => served(sdl, 'Recruiting')).toThrow(
    /gives Person a name that the service already has\. Choose another prefix/,
  );
});

test('the subgraph has the prefix in every reference, so that it composes', () => {
  const sdl = served(fullSdl, 'Recruiting').subgraphSdl();
  const defined = new Set<string>();
  const referred = new Set<string>();
  visit(parse(sdl), {
    enter: (node) => {
      if (node.kind.endsWith('TypeDefinition') && 'name' in node)
        defined.add((node.name as { value: string }).value);
      if (node.kind === Kind.NAMED_TYPE) referred.add(node.name.value);
    },
  });
  const builtIn = ['Boolean', 'Float', 'ID', 'Int', 'String'];
  expect([...referred].filter((name) => !defined.has(name) && !builtIn.includes(name))).toEqual([]);
  expect(sdl).toContain('type RecruitingPageInfo @shareable');
});

const PERSONS = `
  type Query { persons(first: Int, after: String): PersonPage! }
  type PersonPage { items: [Person!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type Person { id: ID! }
`;

function served(sdl: string, prefix: string) {
  return servedOffline(sdl, { prefix });
}
