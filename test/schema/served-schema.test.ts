import { readFileSync } from 'node:fs';
import {
  buildClientSchema,
  buildSchema,
  findBreakingChanges,
  findDangerousChanges,
  getIntrospectionQuery,
  lexicographicSortSchema,
  printSchema,
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
  const sdl = 'type Query { hello: String info: PageInfo } type PageInfo { hasNextPage: Boolean }';
  const schema = await introspect({ schema: buildSchema(sdl) }, sdl);
  expect(Object.keys(schema.getQueryType()!.getFields())).toEqual(['hello', 'info', '_service']);
  const types = Object.keys(schema.getTypeMap()).filter((name) => !name.startsWith('__'));
  expect(types.toSorted()).toEqual(['Boolean', 'PageInfo', 'Query', 'String', '_Service']);
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
