import { isInterfaceType, isNonNullType, type GraphQLSchema } from 'graphql';
import {
  fieldAt,
  objectTypesOf,
  type Adapter,
  type NestedAdapter,
  type PagedField,
  type Reach,
} from '../derived.ts';
import type { ServedNames } from '../names.ts';
import { describeReach, reachParent } from './by-id.ts';
import { findLists, isIdentified, type FoundList } from './lists.ts';
import { checkOverrides } from './check-overrides.ts';
import type { Overrides } from './overrides.ts';
import { describeResult } from './results.ts';

/** What was derived from one list, and why, for `schema explain`. */
export interface ListReport {
  /** For example `Vacancy.candidates`. */
  readonly list: string;
  /** Whether its type looks like a page: an object with `items` and `pageInfo`. */
  readonly inPages: boolean;
  readonly all: string | null;
  readonly connection: string | null;
  /** The names of the connection types; null without a connection. */
  readonly types: { readonly connection: string; readonly edge: string } | null;
  /** How the parent is reached again; null at the root, or if it cannot be. */
  readonly parent: string | null;
  readonly why: readonly string[];
}

interface AdapterPlan {
  /** The adapters of the query root. */
  readonly adapters: readonly Adapter[];
  readonly nested: readonly NestedAdapter[];
  /** Why fields were not derived, for warnings at the start. */
  readonly warnings: readonly string[];
  readonly reports: readonly ListReport[];
}

/**
 * Decides which adapters are derived from the lists of the schema, and their names. If the upstream already has a field
 * of that name, the field is not derived, and a warning says so.
 *
 * @param schema the upstream under served names, so with `PageInfo` already renamed
 * @throws OperatorMistakes about adapters.json
 */
export function planAdapters(
  schema: GraphQLSchema,
  names: ServedNames,
  overrides: Overrides,
): AdapterPlan {
  const lists = findLists(schema, overrides.fields);
  checkOverrides(overrides, schema, lists);
  const adapters: Adapter[] = [];
  const nested: NestedAdapter[] = [];
  const warnings: string[] = [];
  const derived = new Set<string>();
  const reports = lists.map((list) => {
    const choice = choose(list, overrides, schema);
    if (typeof choice === 'string') return reportOf(list, [choice]);
    const { paged, reach } = choice;
    const parent = list.parent.name;
    const clashes: string[] = [];
    const whereFree = <Field extends { field: string }>(derivedField: Field): Field | undefined => {
      const place = `${parent}.${derivedField.field}`;
      if (!derived.has(place) && !fieldAt(schema, parent, derivedField.field)) {
        derived.add(place);
        return derivedField;
      }
      clashes.push(`${place} is not derived: a field of that name already exists.`);
      return undefined;
    };
    const usual = reach ? paged.name : names.upstream(paged.name);
    const inParent = (name: string) => (reach ? name : names.derived(name));
    const types = connectionTypes(schema, paged, names);
    if (typeof types === 'string') clashes.push(types);
    const adapter: Adapter = {
      ...paged,
      parent,
      page: overrides.fields[list.coordinate]?.page,
      all: whereFree({ field: inParent(`all${capitalized(usual)}`), ...freeNames(paged, ALL) }),
      connection:
        types === undefined || typeof types === 'string'
          ? undefined
          : whereFree({
              field: inParent(`${usual}Connection`),
              ...types,
              ...freeNames(paged, CONNECTION),
            }),
    };
    if (reach) nested.push({ ...adapter, reach });
    else adapters.push(adapter);
    warnings.push(...clashes);
    return reportOf(list, [...reasons(list, adapter, schema), ...clashes], adapter, reach);
  });
  return { adapters, nested, warnings, reports };
}

/** @returns the reason, as text, if nothing is derived */
function choose(
  { coordinate, parent, verdict }: FoundList,
  { fields, types }: Overrides,
  schema: GraphQLSchema,
): { readonly paged: PagedField; readonly reach: Reach | undefined } | string {
  if (typeof verdict === 'string') return `${verdict}.`;
  if (fields[coordinate]?.skip) return 'adapters.json skips it.';
  if (parent === schema.getQueryType()) return { paged: verdict, reach: undefined };
  if (isInterfaceType(parent)) {
    return `${parent.name} is an interface, and fields are derived only for object types. Request it inside "... on" one of them.`;
  }
  const reach = reachParent(schema, parent, types);
  return typeof reach === 'string' ? reach : { paged: verdict, reach };
}

/** The gateway's arguments in the order of their definition, each with its name if a filter has the usual name. */
const ALL = { limit: 'drainLimit', after: 'drainAfter' };
const CONNECTION = { after: 'connectionAfter', last: 'connectionLast', before: 'connectionBefore' };

/** Names the gateway's arguments, with `_` appended while a filter has the name. */
function freeNames<Name extends string>({ filters }: PagedField, names: Record<Name, string>) {
  const taken = new Set(filters.map(({ name }) => name));
  const free = Object.entries<string>(names).map(([usual, instead]) => {
    let name = taken.has(usual) ? instead : usual;
    while (taken.has(name)) name += '_';
    return [usual, name];
  });
  return Object.fromEntries(free) as Record<Name, string>;
}

/**
 * Names the types of a connection after its node, so that all lists of it share them: `PersonConnection`, or
 * `RelayPersonConnection` where the service has a type of that name, for example its page. (Relay recognizes a connection
 * by a name that ends with `Connection`.)
 *
 * @returns undefined if no cursor can name a record; the reason, as text, if all these names are taken
 */
function connectionTypes(
  schema: GraphQLSchema,
  { nodeType, identity }: PagedField,
  names: ServedNames,
): { readonly type: string; readonly edge: string } | string | undefined {
  if (identity === undefined) return undefined;
  const node = names.unprefixed(nodeType.name);
  const free = [node, `Relay${node}`]
    .map((name) => ({ type: names.type(`${name}Connection`), edge: names.type(`${name}Edge`) }))
    .find(({ type, edge }) => !schema.getType(type) && !schema.getType(edge));
  return free ?? `${nodeType.name} has no connection: the service has types of its names.`;
}

function capitalized(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

function reportOf(
  { coordinate, givesPages }: FoundList,
  why: readonly string[],
  { all, connection }: Partial<Adapter> = {},
  reach?: Reach,
): ListReport {
  return {
    list: coordinate,
    inPages: givesPages,
    all: all?.field ?? null,
    connection: connection?.field ?? null,
    types: connection ? { connection: connection.type, edge: connection.edge } : null,
    parent: reach ? describeReach(reach) : null,
    why,
  };
}

function reasons(
  { coordinate }: FoundList,
  { after, recordType, nodeType, result, identity }: Adapter,
  schema: GraphQLSchema,
): string[] {
  const kind = isNonNullType(recordType) ? nodeType.name : `${nodeType.name} or null`;
  return [
    `it takes first and ${after.name}, and returns pages of ${kind}.`,
    ...(result ? [describeResult(result, 'an error of the list')] : []),
    ...(identity === undefined
      ? [
          `it has no connection, because ${nodeType.name} has no plain field id, so that a cursor cannot name a record. ` +
            `If another field identifies a record, write it in adapters.json: "fields": { "${coordinate}": { "identity": "…" } }.`,
        ]
      : objectTypesOf(schema, nodeType)
          .filter((type) => !isIdentified(type, identity))
          .map(
            ({ name }) =>
              `${name} has no plain field ${identity}: if the list changes meanwhile, some of its records may come twice.`,
          )),
  ];
}
