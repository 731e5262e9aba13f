import fc from 'fast-check';
import {
  isSpecifiedScalarType,
  parse,
  print,
  TypeInfo,
  validate,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { askDirectly } from '../support/clients/direct.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { randomOperation } from '../support/random/random-operation.ts';
import { randomRuns, usually } from '../support/random/random-runs.ts';
import { fullScalar, fullSdl, fullService } from '../support/imitations/honest.ts';

type World = Awaited<ReturnType<typeof startGatewayOverSandbox>>;

const { schema } = fullService();
const worlds = new Map<string, World>();

beforeAll(async () => {
  for (const prefix of ['', 'Recruiting']) {
    const config = { schemaPrefix: prefix, maxAliases: 1_000, maxTokens: 20_000 };
    const world = await startGatewayOverSandbox({ schema }, { snapshot: fullSdl, config });
    // From now on the gateway has tokens.
    await world.ask(inServedNames('{ me { __typename } }', prefix));
    worlds.set(prefix, world);
  }
});
afterAll(async () => {
  for (const world of worlds.values()) await world[Symbol.asyncDispose]();
});

test.each([
  ['', 120],
  ['Recruiting', 50],
])(
  'the gateway answers every query of the upstream like the upstream; prefix "%s"',
  async (prefix, runs) => {
    const world = worlds.get(prefix)!;
    let valid = 0;
    await fc.assert(
      fc.asyncProperty(fc.gen(), async (g) => {
        const operation = randomOperation(schema, g, { scalar: fullScalar });
        fc.pre(validate(schema, parse(operation.query)).length === 0);
        const [direct, through] = await Promise.all([
          askDirectly(world, operation),
          world.ask(inServedNames(operation.query, prefix), operation.variables),
        ]);
        // Some operations have more directives than the gateway allows, spreads included.
        fc.pre(!through.errors?.some(({ message }) => /has \d+ directives/.test(message)));
        valid += 1;
        expect(
          comparable(through, prefix),
          operation.query + JSON.stringify(operation.variables),
        ).toEqual(comparable(direct, ''));
      }),
      {
        // Part of the error message, even if shrinking takes a long time.
        timeout: 60_000,
        interruptAfterTimeLimit: 100_000,
        numRuns: randomRuns(runs),
        maxSkipsPerRun: 400,
      },
    );
    expect(valid).toBeGreaterThanOrEqual(usually(runs / 3));
  },
  120_000,
);

/** Checks that the answer has the same keys. */
function inServedNames(query: string, prefix: string): string {
  const types = new TypeInfo(schema);
  const served = visit(
    parse(query),
    visitWithTypeInfo(types, {
      NamedType: ({ name, ...node }) => ({
        ...node,
        name: { ...name, value: typeName(name.value) },
      }),
      Field: (node) => {
        const { name, alias } = node;
        const isOfRoot = types.getParentType() === schema.getQueryType();
        if (prefix === '' || !isOfRoot || name.value.startsWith('__')) return undefined;
        const value = `${prefix.toLowerCase()}${name.value.charAt(0).toUpperCase()}${name.value.slice(1)}`;
        return { ...node, name: { ...name, value }, alias: alias ?? name };
      },
    }),
  );
  return print(served);

  function typeName(name: string): string {
    const type = schema.getType(name);
    if (type === schema.getQueryType() || isSpecifiedScalarType(type!)) return name;
    return prefix + (name === 'PageInfo' ? 'UpstreamPageInfo' : name);
  }
}

/** Ignores locations, which refer to the sent document, and the order of errors (specification, 7.1.2). */
function comparable(answer: object, prefix: string) {
  const { data, errors = [] } = answer as {
    data?: unknown;
    errors?: { message: string; path?: unknown[]; extensions?: object }[];
  };
  const renamed = JSON.parse(
    JSON.stringify(data ?? null)
      .replaceAll(`"${prefix}UpstreamPageInfo"`, '"PageInfo"')
      .replaceAll(new RegExp(`"${prefix}([A-Z][a-zA-Z]*)"`, 'g'), '"$1"'),
  );
  const reported = errors.map(({ message, path, extensions }) => ({
    message,
    path,
    extensions: extensions ?? {},
  }));
  return {
    data: renamed,
    errors: reported.toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b))),
  };
}
