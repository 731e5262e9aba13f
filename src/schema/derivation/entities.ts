import {
  getNullableType,
  isObjectType,
  isRequiredArgument,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';
import {
  idOf,
  objectTypesOf,
  typesWithFields,
  type Adapter,
  type Entity,
  type EntityLookup,
  type Report,
} from '../derived.ts';
import { fieldsOfList } from '../derived-fields.ts';
import { fieldName, type ServedNames } from '../names.ts';
import { bestOf, type ByIdFields } from './by-id.ts';
import { describeResult } from './results.ts';

interface EntityPlan {
  readonly entities: readonly Entity[];
  readonly reports: readonly Report[];
  /** Why something was not derived, for warnings at the start. */
  readonly warnings: readonly string[];
}

interface Derived {
  readonly adapters: readonly Adapter[];
  readonly byId: ByIdFields;
  readonly names: ServedNames;
}

/**
 * Decides for every object type with a plain `id` how its records are found by id: by the root field that returns the
 * type by its id alone (see by-id.ts), or in a list of the root without required arguments (see `bestOf`). Otherwise
 * they are not found; other subgraphs may still refer to them.
 */
export function planEntities(
  schema: GraphQLSchema,
  { adapters, byId: found, names }: Derived,
): EntityPlan {
  const query = schema.getQueryType()!;
  const root = query.name;
  const lists = adapters.filter(({ reach }) => !reach);
  const taken = new Set([
    ...Object.keys(query.getFields()),
    ...lists.flatMap(fieldsOfList).map(({ name }) => name),
  ]);
  const warnings: string[] = [];
  const planned = identifiedTypes(schema).map((type) => {
    const byId = found.get(type);
    const adapter = byId ? undefined : listOf(schema, type, lists);
    const lookup: EntityLookup | undefined = byId ?? (adapter && { kind: 'list', adapter });
    const why = byId ? whyById(byId.result) : adapter ? IN_LIST : NOT_FOUND;
    const isDerived = adapter || byId?.result;
    const name = isDerived ? names.derived(fieldName(names.unprefixed(type.name))) : undefined;
    const isFree = name === undefined || !taken.has(name);
    const clash = `${root}.${name} is not derived: a field of that name already exists.`;
    // The field by which the record is found may have its name, and return it as a result.
    if (!isFree && byId?.field !== name) warnings.push(clash);
    if (name !== undefined) taken.add(name);
    const field = isFree ? name : undefined;
    const foundBy = byId
      ? `${root}.${byId.field}(${byId.argument.name}: …)`
      : adapter && `${root}.${adapter.name}`;
    return {
      entity: { type, idType: getNullableType(idOf(type)!.type), lookup, field },
      report: {
        subject: type.name,
        facts: { entity: foundBy ? `found by ${foundBy}` : 'cannot be found by its id', field },
        why: isFree ? [why] : [why, clash],
      },
    };
  });
  return {
    entities: planned.map(({ entity }) => entity),
    reports: planned.map(({ report }) => report),
    warnings,
  };
}

/** A key may not have arguments (Federation, KEY_FIELDS_HAS_ARGS). */
function identifiedTypes(schema: GraphQLSchema): GraphQLObjectType[] {
  const roots: unknown[] = [schema.getQueryType(), schema.getMutationType()];
  return typesWithFields(schema)
    .filter((type) => isObjectType(type))
    .filter((type) => {
      const id = roots.includes(type) ? undefined : idOf(type);
      return id?.args.length === 0;
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** A walk remembers records by what identifies them, so only lists that are identified by `id` are used. */
function listOf(
  schema: GraphQLSchema,
  type: GraphQLObjectType,
  adapters: readonly Adapter[],
): Adapter | undefined {
  const usable = adapters.filter(
    ({ nodeType, filters, identity }) =>
      objectTypesOf(schema, nodeType).includes(type) &&
      !filters.some(isRequiredArgument) &&
      identity === 'id',
  );
  return bestOf(usable, ({ nodeType }) => nodeType === type);
}

function whyById(result: Parameters<typeof describeResult>[0] | undefined): string {
  return result ? describeResult(result) : 'the field returns the type by its id.';
}

const IN_LIST = 'no root field returns the type by its id alone, and the list needs no arguments.';
const NOT_FOUND =
  'no root field returns the type by its id alone, and it is in no derived list of the root that needs no arguments and is identified by id.';
