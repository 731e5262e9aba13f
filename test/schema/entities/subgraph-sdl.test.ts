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
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fullSdl, fullService } from '../../support/imitations/honest.ts';
import { startGatewayOverSandbox } from '../../support/gateway/gateway.ts';
import { runHere } from '../../support/gateway/run-here.ts';

type World = Awaited<ReturnType<typeof startGatewayOverSandbox>>;

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

describe('the SDL of a pulled schema', () => {
  let world: World;
  let sdl: string;
  beforeAll(async () => {
    world = await startGatewayOverSandbox({ schema: fullService().schema }, { snapshot: fullSdl });
    ({ sdl } = (await world.ask<{ _service: { sdl: string } }>(SERVICE)).data._service);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test('it contains everything that callers see, and nothing else', () => {
    const subgraph = buildSchema(sdl + FEDERATION);
    const served = withoutFederation(world.gateway.served.schema);
    expect(findBreakingChanges(served, subgraph)).toEqual([]);
    const onlyHere = findBreakingChanges(subgraph, served).map(({ description }) => description);
    expect(onlyHere).toEqual(
      ['link', 'key', 'shareable'].map((name) =>
        expect.stringMatching(`^(Directive @)?${name} was removed.$`),
      ),
    );
    expect(findDangerousChanges(served, subgraph)).toEqual([]);
  });

  test('it keeps @specifiedBy of scalars, @oneOf of inputs, and @deprecated of values', () => {
    expect(sdl).toContain(
      'scalar DateTime @specifiedBy(url: "https://scalars.graphql.org/andimarek/date-time")',
    );
    expect(sdl).toContain('directive @oneOf on INPUT_OBJECT');
    expect(sdl).toContain('input VacancyBy @oneOf {');
    expect(sdl).toContain('TRIAL @deprecated(reason: "Folded into INTERVIEW.")');
    expect(sdl).toContain('union Applicant = Candidate | Robot');
    expect(sdl).toContain('type Candidate implements Named @key(fields: "id")');
    expect(sdl).toContain('type Vacancy implements Named @key(fields: "id")');
    expect(sdl).toContain('type PageInfo @shareable {');
    expect(sdl).toMatch(/type UpstreamPageInfo \{/);
  });

  test('it omits the router fields and types', () => {
    const names = parse(sdl).definitions.flatMap((definition) =>
      'name' in definition ? [definition.name?.value] : [],
    );
    expect(names).not.toEqual(expect.arrayContaining(['_Any']));
    for (const name of ['_Any', '_Entity', '_Service', 'stream']) {
      expect(names).not.toContain(name);
    }
    expect(sdl).not.toMatch(/_entities|_service/);
  });
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
