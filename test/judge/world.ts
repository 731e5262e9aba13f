import type { GeneratorValue } from 'fast-check';
import fc from 'fast-check';
import { getNamedType, isCompositeType, printSchema, type GraphQLSchema } from 'graphql';
import { objectTypesOf } from '../../src/schema/derived.ts';
import { serveSnapshot, type ServedSchema } from '../../src/schema/served/served-schema.ts';
import { resultsSchema, richSchema } from '../service/made.ts';
import { fullService } from '../service/full.ts';
import { range } from '../service/lists.ts';
import { createOracle, type Oracle } from './oracle.ts';

/** A service whose records never change, and what the gateway makes of its schema. */
export interface World {
  readonly name: string;
  /** That of the service, executable. */
  readonly schema: GraphQLSchema;
  readonly snapshot: string;
  readonly prefix: string | undefined;
  readonly served: ServedSchema;
  readonly oracle: Pick<Oracle, 'ask'>;
  /** Ids of records of an entity, by the served name of its type; and ids of no record. */
  idsOf(type: string): readonly (string | number)[];
  /** Ids of the records that a root field returns. */
  idsFor(coordinate: string): readonly (string | number)[];
  scalar(name: string, g: GeneratorValue): unknown;
}

export function fullWorld(): Promise<World> {
  return openWorld('full', fullService().schema, undefined, fullScalar);
}

/** Services with nullable records, unions, interfaces, failing fields, errors as data, and names that clash. */
export async function openWorlds(): Promise<World[]> {
  const rich = richSchema();
  const results = (managers: boolean) => resultsSchema({ managers });
  return Promise.all([
    fullWorld(),
    openWorld('rich', rich, undefined, usualScalar),
    openWorld('rich with a prefix', rich, 'Recruiting', usualScalar),
    openWorld('results', results(true), undefined, usualScalar),
    openWorld('results that are errors', results(false), undefined, usualScalar),
  ]);
}

async function openWorld(
  name: string,
  schema: GraphQLSchema,
  prefix: string | undefined,
  scalar: World['scalar'],
): Promise<World> {
  const snapshot = printSchema(schema);
  const served = serveSnapshot(snapshot, { ...SETTINGS, schemaPrefix: prefix });
  const oracle = createOracle(schema, served);
  const ids = new Map<string, (string | number)[]>();
  for (const { type } of served.entities)
    ids.set(type.name, [9_999, ...(await oracle.idsOf(type.name))]);
  const idsOf = (type: string) => ids.get(type) ?? [1];
  return {
    name,
    schema,
    snapshot,
    prefix,
    served,
    oracle,
    idsOf,
    idsFor: (coordinate) => {
      const [parent = '', field = ''] = coordinate.split('.');
      const type = served.schema.getType(parent);
      const of =
        type && 'getFields' in type ? getNamedType(type.getFields()[field]?.type) : undefined;
      if (!of || !isCompositeType(of)) return [];
      return objectTypesOf(served.schema, of).flatMap(({ name: member }) => ids.get(member) ?? []);
    },
    scalar,
  };
}


const SETTINGS = {
  schemaPath: 'upstream.graphql',
  mutations: 'off',
  connectionMax: 500,
  drainMaxItems: 100_000,
  totalCountSeconds: 300,
} as const;

function usualScalar(name: string, g: GeneratorValue): unknown {
  switch (name) {
    case 'Int':
    case 'Float':
      return g(fc.integer, { min: 1, max: 70 });
    case 'Boolean':
      return g(fc.boolean);
    default:
      return g(fc.constantFrom, 'a', 'er', 'engineer', '', '7', 'é"\\');
  }
}

/** Representations of entities, some of them invalid. */
const representations: unknown[] = [
  ...range(4).map((id) => ({ __typename: 'Vacancy', id })),
  ...range(7).map((id) => ({ __typename: 'Candidate', id: String(id) })),
  { __typename: 'Vacancy', id: 600 },
  { __typename: 'Candidate', id: 1.5 },
  { __typename: 'Agency', id: 'a1' },
  { __typename: 'Nobody', id: 1 },
  { __typename: 'Vacancy' },
  { id: 1 },
  [1],
  'Vacancy',
];

/** A random value of one of the scalars of the schema, or of the gateway. */
function fullScalar(name: string, g: fc.GeneratorValue): unknown {
  switch (name) {
    case 'Int':
      return g(fc.integer, { min: -1, max: g(fc.constantFrom, 8, 120) });
    case 'Float':
      return g(fc.integer, { min: -10, max: 10 });
    case 'Boolean':
      return g(fc.boolean);
    case 'DateTime':
      return '2026-01-05T00:00:00Z';
    case 'Json':
      return g(fc.constantFrom, 1, 'x', true);
    case '_Any':
      return g(fc.constantFrom, ...representations);
    default:
      return g(fc.constantFrom, 'Title 3', 'Agency 2', '10', '', 'é"\\');
  }
}
