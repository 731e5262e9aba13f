import {
  getNullableType,
  GraphQLBoolean,
  isAbstractType,
  isIntrospectionType,
  isObjectType,
  isRequiredArgument,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';
import type { Adapter } from './adapter.ts';
import type { Entity, EntityLookup, EntityReport } from './entity.ts';
import { fieldName } from './field-name.ts';
import { byIdField, idOf, type TypeOverrides } from './reach-parent.ts';
import type { RootNames } from './root-names.ts';

export interface EntityPlan {
  readonly entities: readonly Entity[];
  readonly reports: readonly EntityReport[];
  /** For the log at start-up: what was not derived, and why. */
  readonly warnings: readonly string[];
}

interface Derived {
  /** The lists of the root. */
  adapters: readonly Adapter[];
  overrides: TypeOverrides;
  names: RootNames;
}

/**
 * Decides for every object type with a plain `id` how its records are found by it:
 *
 * 1. by the root field that gives the type by its id alone (see reach-parent.ts);
 * 2. else in a list of the root without required arguments. Of several: a list of the type itself before one of
 *    an interface or union, then the one with the fewest filters, then one that is called like the type, then
 *    the shortest name, then the first of the alphabet;
 * 3. else not at all: other subgraphs may still refer to them.
 */
export function planEntities(schema: GraphQLSchema, derived: Derived): EntityPlan {
  const { names } = derived;
  const root = rootOf(schema);
  const taken = new Set([
    ...Object.keys(schema.getQueryType()?.getFields() ?? {}),
    ...derived.adapters.flatMap(({ all, connection }) => [all?.field, connection?.field]),
  ]);
  const warnings: string[] = [];
  const found = identifiedTypes(schema).map((type) => {
    const { lookup, why } = lookupOf(schema, type, derived);
    const wanted =
      lookup?.kind === 'list' ? names.derived(fieldName(names.unprefixed(type.name))) : undefined;
    const isFree = wanted === undefined || !taken.has(wanted);
    const clash = `${root}.${wanted} is not derived: there is a field of that name.`;
    if (!isFree) warnings.push(clash);
    if (wanted !== undefined) taken.add(wanted);
    const entity: Entity = {
      type,
      idType: getNullableType(idOf(type)!.type),
      lookup,
      field: isFree ? wanted : undefined,
    };
    return { entity, report: reportOf(entity, root, isFree ? why : [...why, clash]) };
  });
  return {
    entities: found.map(({ entity }) => entity),
    reports: found.map(({ report }) => report),
    warnings,
  };
}

/** A key may not have arguments (Federation, KEY_FIELDS_HAS_ARGS), and yes or no is none. */
function identifiedTypes(schema: GraphQLSchema): GraphQLObjectType[] {
  const roots: unknown[] = [
    schema.getQueryType(),
    schema.getMutationType(),
    schema.getSubscriptionType(),
  ];
  return Object.values(schema.getTypeMap())
    .filter((type) => isObjectType(type))
    .filter((type) => !isIntrospectionType(type) && !roots.includes(type))
    .filter((type) => {
      const id = idOf(type);
      return id?.args.length === 0 && getNullableType(id.type) !== GraphQLBoolean;
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function lookupOf(
  schema: GraphQLSchema,
  type: GraphQLObjectType,
  { adapters, overrides, names }: Derived,
): { lookup: EntityLookup | undefined; why: readonly string[] } {
  const said = overrides.get(type.name) ?? {};
  const root = rootOf(schema);
  const byId = byIdField(schema, type, overrides);
  if (byId) {
    const why = said.byId
      ? 'adapters.json names it.'
      : 'it gives the type, and takes its id alone.';
    return { lookup: byId, why: [`${root}.${byId.field}: ${why}`] };
  }
  if (said.list === null) return { lookup: undefined, why: ['adapters.json says so.'] };
  const holding = adapters.filter((adapter) => holds(schema, adapter, type));
  const usable = holding.filter(({ filters }) => !filters.some(isRequiredArgument));
  const [adapter, ...others] =
    said.list === undefined
      ? usable.toSorted(byRank(type, names))
      : usable.filter(({ name }) => name === said.list);
  if (!adapter) return { lookup: undefined, why: [whyNot(type, root, holding)] };
  return {
    lookup: { kind: 'list', adapter },
    why: [
      `${root}.${adapter.name}: ${said.list === undefined ? 'it lists the type, and needs no arguments.' : 'adapters.json names it.'}`,
      ...(others.length > 0
        ? [`Others that list it: ${others.map(({ name }) => `${root}.${name}`).join(', ')}.`]
        : []),
      ...adapter.filters
        .filter(({ defaultValue }) => defaultValue !== undefined && defaultValue !== null)
        .map(
          ({ name }) =>
            `Only records are found that the default of its filter ${name} lets through.`,
        ),
    ],
  };
}

function holds(schema: GraphQLSchema, { nodeType }: Adapter, type: GraphQLObjectType): boolean {
  return nodeType === type || (isAbstractType(nodeType) && schema.isSubType(nodeType, type));
}

function byRank(type: GraphQLObjectType, names: RootNames) {
  const own = fieldName(names.unprefixed(type.name)).toLowerCase();
  const isOwn = ({ nodeType }: Adapter) => Number(nodeType === type);
  const isNamedAfter = ({ name }: Adapter) =>
    Number(names.upstream(name).toLowerCase().startsWith(own));
  return (a: Adapter, b: Adapter) =>
    isOwn(b) - isOwn(a) ||
    a.filters.length - b.filters.length ||
    isNamedAfter(b) - isNamedAfter(a) ||
    a.name.length - b.name.length ||
    (a.name < b.name ? -1 : 1);
}

function whyNot(type: GraphQLObjectType, root: string, holding: readonly Adapter[]): string {
  const needing = holding.map(({ name }) => `${root}.${name}`).join(', ');
  return holding.length > 0
    ? `no root field gives it by its id alone, and what lists it (${needing}) needs arguments.`
    : `no root field gives it by its id alone, and no list in pages of the root has any ${type.name}.`;
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
