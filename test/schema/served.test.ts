import { readFileSync } from 'node:fs';
import {
  buildClientSchema,
  buildSchema,
  execute,
  findBreakingChanges,
  findDangerousChanges,
  getIntrospectionQuery,
  isSpecifiedScalarType,
  lexicographicSortSchema,
  parse,
  print,
  printSchema,
  visit,
  type GraphQLSchema,
  type IntrospectionQuery,
} from 'graphql';
import { describe, expect, test } from 'vitest';
import { OperatorMistake } from '../../src/errors.ts';
import { documentedSdl } from '../support/documented-sdl.ts';
import { startGatewayOverService, startOverFullService } from '../support/gateway/over-service.ts';
import { servedOffline } from '../support/gateway/served.ts';
import { renamedSchema } from '../service/clashing.ts';
import { fullSdl, fullService } from '../service/full.ts';

/** What callers see, by introspection, and the SDL that routers get. */
async function serve(sdl: string, schema?: GraphQLSchema) {
  await using gateway = await startGatewayOverService(schema && { schema }, { snapshot: sdl });
  const query = getIntrospectionQuery({
    inputValueDeprecation: true,
    oneOf: true,
    schemaDescription: true,
    specifiedByUrl: true,
  });
  const { data } = await gateway.ask<IntrospectionQuery>(query);
  const federation = await gateway.ask<{ _service: { sdl: string } }>('{ _service { sdl } }');
  return {
    schema: buildClientSchema(data),
    subgraph: federation.data._service.sdl,
    logged: [...gateway.logged],
  };
}

test('callers get exactly schema/served.graphql, and routers schema/subgraph.graphql', async () => {
  const { schema, subgraph } = await serve(documentedSdl);
  const golden = buildSchema(readFileSync('schema/served.graphql', 'utf8'));
  expect(printSchema(lexicographicSortSchema(schema))).toBe(
    printSchema(lexicographicSortSchema(golden)),
  );
  expect(subgraph).toBe(readFileSync('schema/subgraph.graphql', 'utf8'));
});

test('a schema with every feature keeps its types, except for the name of PageInfo, and routers get all that callers see', async () => {
  const { schema, subgraph } = await serve(fullSdl, fullService().schema);
  const upstream = buildSchema(fullSdl.replaceAll(/\bPageInfo\b/g, 'UpstreamPageInfo'));
  expect(changes(upstream, schema)).toEqual([expect.stringContaining('Subscription')]);

  expect(offeredIn(buildSchema(subgraph + FEDERATION))).toBe(offeredIn(schema));
  for (const line of [
    'scalar DateTime @specifiedBy(url: "https://scalars.graphql.org/andimarek/date-time")',
    'directive @oneOf on INPUT_OBJECT',
    'input VacancyBy @oneOf {',
    'TRIAL @deprecated(reason: "Folded into INTERVIEW.")',
    'type Candidate implements Named @key(fields: "id")',
    'type PageInfo @shareable {',
  ]) {
    expect(subgraph).toContain(line);
  }
});

test('graphql-js over the wrapped schema asks the service, under served names; over the one that callers see it sends nothing', async () => {
  await using gateway = await startOverFullService({
    config: { schemaPrefix: 'Recruiting' },
    ownSchema: true,
  });
  const { upstream, schema } = gateway.gateway.offered;
  const page = parse('{ page: recruitingCandidates(first: 7) { __typename items { id score } } }');
  const { data, errors } = await execute({ schema: upstream, document: page });
  expect(data).toMatchObject({
    page: { __typename: 'RecruitingCandidatePage', items: { 6: { id: 7, score: null } } },
  });
  const path = ['page', 'items', 6, 'score'];
  expect(errors).toMatchObject([{ path, extensions: { code: 'NO_SCORE' } }]);
  const refused = await execute({ schema, document: parse('{ recruitingMe { id } }') });
  expect(refused.errors?.[0]?.message).toContain('answered by their plans');
});

const FEDERATION = `
  directive @link(url: String!, import: [String]) repeatable on SCHEMA
  directive @key(fields: String!, resolvable: Boolean = true) repeatable on OBJECT | INTERFACE
  directive @shareable on OBJECT | FIELD_DEFINITION
`;

function changes(before: GraphQLSchema, after: GraphQLSchema): string[] {
  const found = [...findBreakingChanges(before, after), ...findDangerousChanges(before, after)];
  return found.map(({ description }) => description);
}

const withoutRouters = (node: { readonly name: { readonly value: string } }) =>
  /^_(Any|Entity|Service|entities|service)$/.test(node.name.value) ? null : undefined;

/** The SDL of a schema without directives, and without what only routers use. */
function offeredIn(schema: GraphQLSchema): string {
  const document = visit(parse(printSchema(lexicographicSortSchema(schema))), {
    DirectiveDefinition: () => null,
    ScalarTypeDefinition: withoutRouters,
    UnionTypeDefinition: withoutRouters,
    ObjectTypeDefinition: withoutRouters,
    FieldDefinition: withoutRouters,
  });
  return print(document);
}

test('a derived field whose name the upstream uses is omitted, with a warning at the start', async () => {
  const sdl = documentedSdl.replace('type Query {', 'type Query {\n  allPersons: Int\n');
  const { schema, logged } = await serve(sdl, buildSchema(sdl));
  expect(String(schema.getQueryType()!.getFields()['allPersons']!.type)).toBe('Int');
  const warnings = logged.filter(({ level }) => level === 40).map(({ msg }) => msg);
  expect(warnings).toEqual([
    'Query.allPersons is not derived: a field of that name already exists.',
  ]);
});

test('a snapshot without paged fields is served unchanged, with its description', async () => {
  const sdl = `"""All about people."""
    schema { query: Query }
    type Query { hello: String info: PageInfo } type PageInfo { hasNextPage: Boolean }`;
  const { schema } = await serve(sdl, buildSchema(sdl));
  expect(schema.description).toBe('All about people.');
  expect(Object.keys(schema.getQueryType()!.getFields())).toEqual(['hello', 'info', '_service']);
  const types = Object.keys(schema.getTypeMap()).filter((name) => !name.startsWith('__'));
  expect(types.toSorted()).toEqual(['Boolean', 'PageInfo', 'Query', 'String', '_Service']);
});

test('what is derived from a deprecated list is deprecated for the same reason', () => {
  const deprecated = '): PersonPage! @deprecated(reason: "Use \\"people\\".")';
  const { schema } = servedOffline(documentedSdl.replace(/\): PersonPage!/, deprecated));
  const fields = schema.getQueryType()!.getFields();
  for (const name of ['persons', 'allPersons', 'personsConnection']) {
    expect([name, fields[name]!.deprecationReason]).toEqual([name, 'Use "people".']);
  }
});

const isOurs = ({ name }: { name: string }) => !name.startsWith('_');

/** The names of all types that are not built in, and of all root fields. */
function namesServed(parts?: { prefix: string }): string[][] {
  const { schema } = servedOffline(fullSdl, parts);
  const roots = [schema.getQueryType()!, schema.getMutationType()!];
  const types = Object.values(schema.getTypeMap()).filter(
    (type) => isOurs(type) && !roots.includes(type as never) && !isSpecifiedScalarType(type),
  );
  const fields = roots.flatMap((root) => Object.values(root.getFields()).filter(isOurs));
  return [types, fields].map((each) => each.map(({ name }) => name).toSorted());
}

describe('SCHEMA_PREFIX', () => {
  test('is before every type that is not built in, and every root field, including Relay’s and the derived ones', () => {
    const [types = [], fields = []] = namesServed();
    expect(namesServed({ prefix: 'Recruiting' })).toEqual([
      types.map((name) => `Recruiting${name}`),
      fields.map((name) => `recruiting${name[0]!.toUpperCase()}${name.slice(1)}`),
    ]);
    expect(types).toEqual(expect.arrayContaining(['PageInfo', 'UpstreamPageInfo', 'VacancyBy']));
    expect(fields).toEqual(
      expect.arrayContaining(['candidates', 'allCandidates', 'robot', 'hire']),
    );
    // Fields of other types keep their names, and so do those that are derived from them.
    const { adapters } = servedOffline(fullSdl, { prefix: 'Recruiting' });
    expect(adapters.map(({ all }) => all?.field)).toContain('allCandidates');
  });

  test.each([
    ['HR', 'HRPerson', 'hrAllPersons'],
    ['HRTool', 'HRToolPerson', 'hrToolAllPersons'],
    ['rec_', 'rec_Person', 'rec_AllPersons'],
    ['Ats2', 'Ats2Person', 'ats2AllPersons'],
  ])('%s gives the type %s and the field %s', (prefix, type, field) => {
    const { schema } = servedOffline(documentedSdl, { prefix });
    expect(schema.getType(type)).toBeDefined();
    expect(schema.getQueryType()!.getFields()).toHaveProperty(field);
  });

  test('that gives a type a name that another one has is refused', () => {
    const sdl = 'type Query { a: A b: AtsA } type A { a: Int } type AtsA { b: Int }';
    const serveIt = () => servedOffline(sdl, { prefix: 'Ats' });
    expect(serveIt).toThrow(OperatorMistake);
    expect(serveIt).toThrow(
      'The type A would be served as AtsA, a name that the service already has',
    );
  });

  test.each(['_service: String', '_entities(of: ID): [Person]'])(
    'serves a root field with the name of a router field: %s',
    async (field) => {
      const sdl = `type Query { ${field} } type Person { id: ID! }`;
      await using world = await startGatewayOverService(
        { schema: buildSchema(sdl) },
        { snapshot: sdl, config: { schemaPrefix: 'Ats' } },
      );
      const own = `ats${/^\w+/.exec(field)![0]}`;
      const selection = field.includes('Person') ? ' { id }' : '';
      const { data, errors } = await world.ask(`{ own: ${own}${selection} _service { sdl } }`);
      expect(errors).toBeUndefined();
      expect(data).toMatchObject({ own: null, _service: { sdl: expect.stringContaining(own) } });
    },
  );

  test('MUTATIONS uses the service’s names of mutations', async () => {
    await using world = await startOverFullService({
      config: { schemaPrefix: 'Recruiting', mutations: ['rename'] },
    });
    const rename = 'recruitingRename(id: 3, name: "New") { __typename name }';
    const { data } = await world.ask(`mutation { ${rename} }`);
    expect(data).toEqual({ recruitingRename: { __typename: 'RecruitingCandidate', name: 'New' } });
    const before = world.service.received.length;
    const hire = 'recruitingHire(candidate: 1, vacancy: 1) { __typename }';
    expect(await world.ask(`mutation { ${rename} ${hire} }`)).toMatchObject({
      errors: [
        {
          message: expect.stringContaining('recruitingHire'),
          extensions: { code: 'FORBIDDEN' },
        },
      ],
    });
    expect(world.service.received.length).toBe(before);
  });
});

test('with SCHEMA_PREFIX root types keep their names', () => {
  const snapshot = printSchema(renamedSchema());
  const { schema } = servedOffline(snapshot, { prefix: 'Recruiting' });
  expect(schema.getQueryType()!.name).toBe('QueryRoot');
  expect(schema.getMutationType()!.name).toBe('Changes');
  for (const name of ['Mutation', 'Subscription', '_Any', '_Entity', '_Service', 'PageInfo']) {
    expect([name, schema.getType(`Recruiting${name}`)]).toEqual([name, expect.anything()]);
  }
});
