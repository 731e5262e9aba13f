import { readFileSync } from 'node:fs';
import {
  buildClientSchema,
  buildSchema,
  findBreakingChanges,
  findDangerousChanges,
  getIntrospectionQuery,
  isIntrospectionType,
  isObjectType,
  isSpecifiedScalarType,
  lexicographicSortSchema,
  printSchema,
  printType,
  type GraphQLSchema,
  type IntrospectionQuery,
} from 'graphql';
import { expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { documentedSdl } from '../support/documented-sdl.ts';
import { fullSdl, fullService } from '../support/imitations/honest.ts';

test('callers get exactly the schema of schema/served.graphql', async () => {
  const served = await introspect({}, documentedSdl);
  const golden = buildSchema(readFileSync('schema/served.graphql', 'utf8'));
  expect(printSchema(lexicographicSortSchema(served))).toBe(
    printSchema(lexicographicSortSchema(golden)),
  );
});

test('every derived type, field and argument is documented', async () => {
  const served = await introspect({ schema: fullService().schema }, fullSdl);
  const upstream = buildSchema(fullSdl);
  const silent: string[] = [];
  for (const type of Object.values(served.getTypeMap())) {
    if (isIntrospectionType(type) || isSpecifiedScalarType(type)) continue;
    const isOurs = !upstream.getType(type.name);
    if (isOurs && type.name !== 'UpstreamPageInfo' && !type.description) silent.push(type.name);
    if (!isObjectType(type) || type.name === 'UpstreamPageInfo') continue;
    for (const field of Object.values(type.getFields())) {
      const original = upstream.getType(type.name);
      if (isObjectType(original) && original.getFields()[field.name]) continue;
      if (!field.description) silent.push(`${type.name}.${field.name}`);
      for (const arg of field.args) {
        if (!arg.description) silent.push(`${type.name}.${field.name}(${arg.name})`);
      }
    }
  }
  expect(silent).toEqual([]);
});

test('lists are found by shape: filters, enums, scalars, interfaces and unions are carried over', async () => {
  const served = await introspect({ schema: fullService().schema }, fullSdl);
  const query = served.getQueryType()!.getFields();
  const signatures = Object.values(query)
    .filter(({ name }) => name.startsWith('all') || name.endsWith('Connection'))
    .map(({ name, args, type }) => {
      const list = args.map((arg) => {
        const { defaultValue } = arg;
        const fallback = defaultValue === undefined ? '' : ` = ${JSON.stringify(defaultValue)}`;
        return `${arg.name}: ${String(arg.type)}${fallback}`;
      });
      return `${name}(${list.join(', ')}): ${String(type)}`;
    });
  expect(signatures.toSorted()).toEqual([
    'activeCandidatesConnection(first: Int, after: String, last: Int, before: String): CandidateConnection',
    'allActiveCandidates(limit: Int, after: String): [Candidate!]',
    'allApplicants(limit: Int, after: String): [Applicant!]',
    'allCandidates(drainLimit: Int, after: String, filter: CandidateFilter, stage: Stage = "NEW", limit: Int): [Candidate]',
    'allEvents(limit: Int, after: String, candidate: Int!): [Event!]',
    'allNamed(limit: Int, after: String): [Named]',
    'allOpenings(): [String!]',
    'allVacancies(limit: Int, after: String): [Vacancy]',
    'applicantsConnection(first: Int, after: String, last: Int, before: String): ApplicantConnection',
    'candidatesConnection(first: Int, after: String, last: Int, before: String, filter: CandidateFilter, stage: Stage = "NEW", limit: Int): CandidateConnection',
    'namedConnection(first: Int, after: String, last: Int, before: String): NamedConnection',
    'openingsConnection(first: Int, after: String, last: Int, before: String, open: Boolean): VacancyConnection',
    'vacanciesConnection(first: Int, after: String, last: Int, before: String): VacancyConnection',
  ]);
  // One of its lists may have nulls.
  expect(printType(served.getType('CandidateEdge')!)).toContain('node: Candidate\n');
});

test('the service’s own types are unchanged, except for the name of PageInfo', async () => {
  const served = await introspect({ schema: fullService().schema }, fullSdl);
  const upstream = buildSchema(fullSdl.replaceAll(/\bPageInfo\b/g, 'UpstreamPageInfo'));
  const changes = [
    ...findBreakingChanges(upstream, served),
    ...findDangerousChanges(upstream, served),
  ];
  expect(changes.map(({ description }) => description)).toEqual([
    expect.stringContaining('Subscription'),
  ]);
});

test('a derived field whose name the upstream uses is omitted, with a warning at the start', async () => {
  const sdl = documentedSdl
    .replace('type Query {', 'type Query {\n  allPersons: Int\n')
    .concat('\ntype UpstreamPageInfo { mine: Boolean }\n');
  const { schema, logged } = await serve({ schema: buildSchema(sdl) }, sdl);
  expect(String(schema.getQueryType()!.getFields()['allPersons']!.type)).toBe('Int');
  expect(schema.getType('UpstreamPageInfo_')).toBeDefined();
  const warnings = logged.filter(({ level }) => level === 40).map(({ msg }) => msg);
  expect(warnings).toEqual([
    'Query.allPersons is not derived: a field of that name already exists.',
  ]);
});

test('a snapshot without paged fields is served unchanged, even for a supergraph', async () => {
  const sdl = 'type Query { hello: String }';
  const schema = await introspect({ schema: buildSchema(sdl) }, sdl);
  expect(Object.keys(schema.getQueryType()!.getFields())).toEqual(['hello', '_service']);
  const types = Object.keys(schema.getTypeMap()).filter((name) => !name.startsWith('__'));
  expect(types.toSorted()).toEqual(['Boolean', 'Query', 'String', '_Service']);
});

async function introspect(
  sandbox: Parameters<typeof startGatewayOverSandbox>[0],
  snapshot: string,
): Promise<GraphQLSchema> {
  return (await serve(sandbox, snapshot)).schema;
}

async function serve(sandbox: Parameters<typeof startGatewayOverSandbox>[0], snapshot: string) {
  await using gateway = await startGatewayOverSandbox(sandbox, { snapshot });
  const query = getIntrospectionQuery({
    inputValueDeprecation: true,
    oneOf: true,
    specifiedByUrl: true,
  });
  const { data } = await gateway.ask<IntrospectionQuery>(query);
  return { schema: buildClientSchema(data), logged: [...gateway.logged] };
}

test('what is derived from a deprecated list is deprecated for the same reason', async () => {
  const sdl = documentedSdl.replace(
    /\): PersonPage!/,
    '): PersonPage! @deprecated(reason: "Use \\"people\\".")',
  );
  const { schema } = await serve({ schema: buildSchema(sdl) }, sdl);
  const fields = schema.getQueryType()!.getFields();
  const reasons = ['persons', 'allPersons', 'personsConnection'].map(
    (name) => fields[name]!.deprecationReason,
  );
  expect(reasons).toEqual(Array.from({ length: 3 }, () => 'Use "people".'));
});
