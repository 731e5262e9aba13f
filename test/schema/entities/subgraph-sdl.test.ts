import {
  buildASTSchema,
  buildSchema,
  findBreakingChanges,
  findDangerousChanges,
  parse,
  printSchema,
  visit,
  type GraphQLSchema,
} from 'graphql';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { fullSdl, fullService } from '../../support/imitations/honest.ts';
import { startGatewayOverSandbox } from '../../support/gateway/gateway.ts';
import { runHere } from '../../support/gateway/run-here.ts';

const SERVICE = '{ _service { sdl } }';
const FEDERATION = `
  directive @link(url: String!, import: [String]) repeatable on SCHEMA
  directive @key(fields: String!, resolvable: Boolean = true) repeatable on OBJECT | INTERFACE
  directive @shareable on OBJECT | FIELD_DEFINITION
`;

test('_service returns schema/subgraph.graphql, and so does schema print --subgraph', async () => {
  const golden = readFileSync('schema/subgraph.graphql', 'utf8');
  await using world = await startGatewayOverSandbox();
  const { data } = await world.ask(SERVICE);
  expect(data).toEqual({ _service: { sdl: golden } });
  const printed = await runHere(['schema', 'print', '--subgraph'], {});
  expect(printed).toMatchObject({ code: 0, stdout: golden });
});

test('the SDL contains everything that callers see, with its directives, and nothing else', async () => {
  await using world = await startGatewayOverSandbox(
    { schema: fullService().schema },
    { snapshot: fullSdl },
  );
  const { sdl } = (await world.ask<{ _service: { sdl: string } }>(SERVICE)).data._service;
  const subgraph = buildSchema(sdl + FEDERATION);
  const served = withoutFederation(world.gateway.offered.schema);
  expect(findBreakingChanges(served, subgraph)).toEqual([]);
  const onlyHere = findBreakingChanges(subgraph, served).map(({ description }) => description);
  expect(onlyHere).toEqual(
    ['link', 'key', 'shareable'].map((name) =>
      expect.stringMatching(`^(Directive @)?${name} was removed.$`),
    ),
  );
  expect(findDangerousChanges(served, subgraph)).toEqual([]);
  for (const line of [
    'scalar DateTime @specifiedBy(url: "https://scalars.graphql.org/andimarek/date-time")',
    'directive @oneOf on INPUT_OBJECT',
    'input VacancyBy @oneOf {',
    'TRIAL @deprecated(reason: "Folded into INTERVIEW.")',
    'type Candidate implements Named @key(fields: "id")',
    'type PageInfo @shareable {',
  ]) {
    expect(sdl).toContain(line);
  }
});

test.each(['_service: String', '_entities(of: ID): [Person]'])(
  'a root field with the name of a router field is refused, and served with SCHEMA_PREFIX: %s',
  async (field) => {
    const snapshot = `type Query { ${field} } type Person { id: ID! }`;
    await expect(startGatewayOverSandbox({}, { snapshot })).rejects.toThrow(
      /Query\._(service|entities) of its own.* Set SCHEMA_PREFIX/,
    );
    await using world = await startGatewayOverSandbox(
      { schema: buildSchema(snapshot) },
      { snapshot, config: { schemaPrefix: 'Ats' } },
    );
    const name = /^\w+/.exec(field)![0];
    const selection = name === '_entities' ? ' { id }' : '';
    const { data, errors } = await world.ask(`{ own: ats${name}${selection} _service { sdl } }`);
    expect(errors).toBeUndefined();
    expect(data).toMatchObject({
      own: null,
      _service: { sdl: expect.stringContaining(`ats${name}`) },
    });
  },
);

function withoutFederation(schema: GraphQLSchema): GraphQLSchema {
  const ofRouters = /^_(Any|Entity|Service|entities|service)$/;
  const drop = ({ name }: { name: { value: string } }) =>
    ofRouters.test(name.value) ? null : undefined;
  const document = visit(parse(printSchema(schema)), {
    DirectiveDefinition: () => null,
    ScalarTypeDefinition: drop,
    UnionTypeDefinition: drop,
    ObjectTypeDefinition: drop,
    FieldDefinition: drop,
  });
  return buildASTSchema(document);
}
