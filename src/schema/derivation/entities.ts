import {
  getNullableType,
  GraphQLBoolean,
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
} from '../derived.ts';
import { fieldsOfList } from '../derived-fields.ts';
import { fieldName, type RootNames } from '../names.ts';
import { describeResult } from './lists.ts';
import type { TypeOverrides } from './overrides.ts';
import { byIdField } from './reach-parent.ts';

/** How the records of one type are found, and why, for `schema explain`. */
export interface EntityReport {
  readonly type: string;
  /** The field by which they are found; null if they cannot be. */
  readonly foundBy: string | null;
  /** The derived field. */
  readonly field: string | null;
  readonly why: readonly string[];
}

interface EntityPlan {
  readonly entities: readonly Entity[];
  readonly reports: readonly EntityReport[];
  /** Why something was not derived, for warnings at the start. */
  readonly warnings: readonly string[];
}

interface Derived {
  /** The adapters of the query root. */
  readonly adapters: readonly Adapter[];
  readonly overrides: TypeOverrides;
  readonly names: RootNames;
}

/**
 * Decides for every object type with a plain `id` how its records are found by id:
 *
 * 1. by the root field that returns the type by its id alone, itself or as a result (see reach-parent.ts);
 * 2. otherwise in a list of the root without required arguments. Of several: a list of the type itself before one of
 *    an interface or union, then the one with the fewest filters, then one that is named like the type, then the
 *    shortest name, then the first in the alphabet;
 * 3. otherwise not at all: other subgraphs may still refer to them.
 */
export function planEntities(schema: GraphQLSchema, derived: Derived): EntityPlan {
  const { names } = derived;
  const root = rootOf(schema);
  const taken = new Set([
    ...Object.keys(schema.getQueryType()!.getFields()),
    ...derived.adapters.flatMap(fieldsOfList).map(({ name }) => name),
  ]);
  const warnings: string[] = [];
  const planned = identifiedTypes(schema).map((type) => {
    const { lookup, why } = lookupOf(schema, type, derived);
    const isDerived = lookup?.kind === 'list' || lookup?.result !== undefined;
    const name = isDerived ? names.derived(fieldName(names.unprefixed(type.name))) : undefined;
    const isFree = name === undefined || !taken.has(name);
    const clash = `${root}.${name} is not derived: a field of that name already exists.`;
    // The field by which the record is found has its name, and returns it as a result.
    const isLookup = lookup?.kind === 'id' && lookup.field === name;
    if (!isFree && !isLookup) warnings.push(clash);
    if (name !== undefined) taken.add(name);
    const entity: Entity = {
      type,
      idType: getNullableType(idOf(type)!.type),
      lookup,
      field: isFree ? name : undefined,
    };
    return { entity, report: reportOf(entity, root, isFree ? why : [...why, clash]) };
  });
  const entities = planned.map(({ entity }) => entity);
  const reports = planned.map(({ report }) => report);
  return { entities, reports, warnings };
}

/** A key may not have arguments (Federation, KEY_FIELDS_HAS_ARGS), and a Boolean cannot identify a record. */
function identifiedTypes(schema: GraphQLSchema): GraphQLObjectType[] {
  const roots: unknown[] = [schema.getQueryType(), schema.getMutationType()];
  return typesWithFields(schema)
    .filter((type) => isObjectType(type))
    .filter((type) => {
      const id = roots.includes(type) ? undefined : idOf(type);
      return id?.args.length === 0 && getNullableType(id.type) !== GraphQLBoolean;
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function lookupOf(
  schema: GraphQLSchema,
  type: GraphQLObjectType,
  { adapters, overrides, names }: Derived,
): { lookup: EntityLookup | undefined; why: readonly string[] } {
  const override = overrides.get(type.name) ?? {};
  const root = rootOf(schema);
  const byId = byIdField(schema, type, overrides);
  if (byId) {
    const why = override.byId
      ? 'adapters.json names it.'
      : byId.result
        ? 'it takes only an id.'
        : 'it returns the type, and takes only its id.';
    const ofResult = byId.result
      ? [describeResult(byId.result, 'null if it says not found, otherwise an error')]
      : [];
    return { lookup: byId, why: [`${root}.${byId.field}: ${why}`, ...ofResult] };
  }
  if (override.list === null) {
    return { lookup: undefined, why: ['adapters.json sets list to null.'] };
  }
  const lists = adapters.filter(({ nodeType }) => objectTypesOf(schema, nodeType).includes(type));
  const usable = lists.filter(
    ({ filters, identity }) => !filters.some(isRequiredArgument) && isById(identity),
  );
  const [adapter, ...others] =
    override.list === undefined
      ? usable.toSorted(byRank(type, names))
      : usable.filter(({ name }) => name === override.list);
  if (!adapter) return { lookup: undefined, why: [whyNot(type, root, lists)] };
  return {
    lookup: { kind: 'list', adapter },
    why: [
      `${root}.${adapter.name}: ${override.list === undefined ? 'it lists the type, and needs no arguments.' : 'adapters.json names it.'}`,
      ...(others.length > 0
        ? [`Other lists of it: ${others.map(({ name }) => `${root}.${name}`).join(', ')}.`]
        : []),
      ...adapter.filters
        .filter(({ defaultValue }) => defaultValue !== undefined && defaultValue !== null)
        .map(({ name }) => `Only records that match the default of its filter ${name} are found.`),
    ],
  };
}

/** Whether records are identified by their id alone: a walk remembers records by what identifies them. */
function isById([path, ...others]: Adapter['identity']): boolean {
  return path?.join('.') === 'id' && others.length === 0;
}

function byRank(type: GraphQLObjectType, names: RootNames) {
  const typeName = fieldName(names.unprefixed(type.name)).toLowerCase();
  const listsIt = ({ nodeType }: Adapter) => Number(nodeType === type);
  const isNamedAfter = ({ name }: Adapter) =>
    Number(names.upstream(name).toLowerCase().startsWith(typeName));
  return (a: Adapter, b: Adapter) =>
    listsIt(b) - listsIt(a) ||
    a.filters.length - b.filters.length ||
    isNamedAfter(b) - isNamedAfter(a) ||
    a.name.length - b.name.length ||
    (a.name < b.name ? -1 : 1);
}

function whyNot(type: GraphQLObjectType, root: string, lists: readonly Adapter[]): string {
  const names = lists.map(({ name }) => `${root}.${name}`).join(', ');
  return lists.length > 0
    ? `no root field returns it by its id alone, and the lists of it (${names}) need arguments${lists.every(({ identity }) => isById(identity)) ? '' : ', or are identified otherwise in adapters.json'}.`
    : `no root field returns it by its id alone, and no paged field of the root lists ${type.name}.`;
}

function reportOf(
  { type, lookup, field }: Entity,
  root: string,
  why: readonly string[],
): EntityReport {
  const foundBy =
    lookup?.kind === 'id'
      ? `${root}.${lookup.field}(${lookup.argument.name}: …)`
      : lookup && `${root}.${lookup.adapter.name}`;
  return { type: type.name, foundBy: foundBy ?? null, field: field ?? null, why };
}

function rootOf(schema: GraphQLSchema): string {
  return schema.getQueryType()!.name;
}
