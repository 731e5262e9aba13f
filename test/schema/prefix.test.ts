import { isSpecifiedScalarType, printSchema } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { fullSdl, fullService } from '../support/imitations/honest.ts';
import { servedOffline } from '../support/gateway/served-offline.ts';

type World = Awaited<ReturnType<typeof startGatewayOverSandbox>>;

let rich: World;
beforeAll(async () => {
  rich = await startGatewayOverSandbox(
    { schema: fullService().schema },
    { snapshot: fullSdl, config: { schemaPrefix: 'Recruiting', mutations: ['rename'] } },
  );
});
afterAll(() => rich[Symbol.asyncDispose]());

const OF_FEDERATION = ['_Any', '_Entity', '_Service', '_entities', '_service'];

test('every type that is not built in has the prefix, and every root field, including Relay’s and the derived ones', () => {
  const { schema } = rich.gateway.offered;
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

test.each([
  'type Query { Persons: Int persons: Int }',
  'type Query { a: Person b: RecruitingPerson } type Person { a: Int } type RecruitingPerson { b: Int }',
])('a prefix that gives two things one name is refused: %s', (sdl) => {
  expect(() => served(sdl, 'Recruiting')).toThrow(
    /gives [Pp]ersons? a name that the service already has\. Choose another prefix/,
  );
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
