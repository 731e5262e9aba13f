import { readFileSync } from 'node:fs';
import {
  buildSchema,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  isSpecifiedScalarType,
  isUnionType,
  type GraphQLSchema,
} from 'graphql';
import { expect, test } from 'vitest';
import { servedOffline } from '../support/gateway/served-offline.ts';
import { fullSdl } from '../support/imitations/honest.ts';
import { SEED } from '../support/random/random-runs.ts';
import { contractOf } from '../support/supergraph/composition.ts';

/** Each run tries one of this many places; `npm run fuzz` tries the others. */
const SHARE = 4;
const resultsSdl = readFileSync('schema/results.graphql', 'utf8');

test.each<[string, string, Parameters<typeof servedOffline>[1]]>([
  ['of every feature', fullSdl, {}],
  ['of every feature, with SCHEMA_PREFIX', fullSdl, { prefix: 'Hr' }],
  ['of results', resultsSdl, {}],
])(
  'a contract composes, whichever type, field or argument of a schema %s has the tag that it excludes',
  (_, sdl, parts) => {
    const tags = tagsOfAll(servedOffline(sdl, parts).upstream);
    const printed = servedOffline(sdl, { ...parts, overrides: overridesOf(tags) }).subgraphSdl();
    const left = [...tags.keys()].filter(
      (place, index) =>
        index % SHARE === SEED % SHARE &&
        isIn(buildSchema(contractOf(printed, `tag-${index}`)), place),
    );
    expect(left).toEqual([]);
  },
  120_000,
);

function isIn(schema: GraphQLSchema, place: string): boolean {
  const [typeName = '', name = '', argument] = place.split(/[.(:)]/);
  const type = schema.getType(typeName);
  if (!type || name === '') return type !== undefined;
  const field = 'getFields' in type ? type.getFields()[name] : undefined;
  if (!field || !argument) return field !== undefined;
  return 'args' in field && field.args.some((each) => each.name === argument);
}

/**
 * The tags of each type, field and argument of a schema. The unions of a type have its tag too: Hive's composition keeps
 * hidden members of unions (docs/supergraph.md).
 */
function tagsOfAll(schema: GraphQLSchema): ReadonlyMap<string, readonly string[]> {
  const roots = [schema.getQueryType(), schema.getMutationType()];
  const types = Object.values(schema.getTypeMap()).filter(
    (type) => !isIntrospectionType(type) && !isSpecifiedScalarType(type),
  );
  const places = types.flatMap((type) => [
    ...(roots.some((root) => root === type) ? [] : [type.name]),
    ...(isObjectType(type) || isInterfaceType(type) ? Object.values(type.getFields()) : []).flatMap(
      ({ name, args }) => [
        `${type.name}.${name}`,
        // Hive's composition hides no arguments of interfaces: docs/supergraph.md.
        ...(isObjectType(type) ? args : []).map(
          (argument) => `${type.name}.${name}(${argument.name}:)`,
        ),
      ],
    ),
  ]);
  return new Map(
    places.map((place) => {
      const type = schema.getType(place);
      const members = isUnionType(type) ? type.getTypes().map(({ name }) => name) : [];
      return [place, [place, ...members].map((each) => `tag-${places.indexOf(each)}`)];
    }),
  );
}

function overridesOf(tags: ReadonlyMap<string, readonly string[]>): object {
  const entries = Array.from(tags, ([place, each]) => [place, { tags: each }] as const);
  return {
    types: Object.fromEntries(entries.filter(([place]) => !place.includes('.'))),
    fields: Object.fromEntries(entries.filter(([place]) => place.includes('.'))),
  };
}
