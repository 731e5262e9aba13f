import { isInterfaceType, isNonNullType, type GraphQLSchema } from 'graphql';
import { fieldAt, type Adapter, type ByIdField, type PagedField, type Report } from '../derived.ts';
import type { ServedNames } from '../names.ts';
import type { ByIdFields } from './by-id.ts';
import { findLists, type FoundList } from './lists.ts';
import { checkOverrides } from './check-overrides.ts';
import type { Overrides } from './overrides.ts';
import { describeResult } from './results.ts';

interface AdapterPlan {
  readonly adapters: readonly Adapter[];
  /** Why fields were not derived, for warnings at the start. */
  readonly warnings: readonly string[];
  readonly reports: readonly Report[];
}

interface Deciding {
  readonly names: ServedNames;
  readonly overrides: Overrides;
  readonly byId: ByIdFields;
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
  { names, overrides, byId }: Deciding,
): AdapterPlan {
  const lists = findLists(schema, overrides.fields);
  checkOverrides(overrides, schema, { lists, byId });
  const adapters: Adapter[] = [];
  const warnings: string[] = [];
  const derived = new Set<string>();
  const reports = lists.map((list) => {
    const choice = choose(list, { overrides, byId }, schema);
    if (typeof choice === 'string') return reportOf(list, [choice]);
    const { paged, reach } = choice;
    const parent = list.parent.name;
    const clashes: string[] = [];
    /** Returns the name under which a field is derived; undefined if it is taken. */
    const free = (name: string): string | undefined => {
      const field = reach ? name : names.derived(name);
      const place = `${parent}.${field}`;
      const isTaken = derived.has(place) || fieldAt(schema, parent, field) !== undefined;
      if (isTaken) clashes.push(`${place} is not derived: a field of that name already exists.`);
      derived.add(place);
      return isTaken ? undefined : field;
    };
    const usual = reach ? paged.name : names.upstream(paged.name);
    const all = free(`all${usual.charAt(0).toUpperCase()}${usual.slice(1)}`);
    const isIdentified = paged.identity !== undefined;
    const types = isIdentified ? connectionTypes(paged, schema, names) : undefined;
    if (isIdentified && !types) {
      clashes.push(`${paged.nodeType.name} has no connection: the service has types of its names.`);
    }
    const connection = types && free(`${usual}Connection`);
    const adapter: Adapter = {
      ...paged,
      parent,
      page: overrides.fields[list.coordinate]?.page,
      all: all === undefined ? undefined : { field: all },
      connection: connection === undefined ? undefined : { field: connection, ...types! },
      reach,
    };
    adapters.push(adapter);
    warnings.push(...clashes);
    return reportOf(list, [...reasons(list, adapter), ...clashes], adapter);
  });
  return { adapters, warnings, reports };
}

/**
 * Names the types of a connection after the node, so that all lists of it share them: `PersonConnection`, or
 * `RelayPersonConnection` where the service has a type of that name, for example its page. (Relay recognizes a connection
 * by a name that ends so.)
 */
function connectionTypes({ nodeType }: PagedField, schema: GraphQLSchema, names: ServedNames) {
  const node = names.unprefixed(nodeType.name);
  return [node, `Relay${node}`]
    .map((name) => ({ type: names.type(`${name}Connection`), edge: names.type(`${name}Edge`) }))
    .find(({ type, edge }) => !schema.getType(type) && !schema.getType(edge));
}

/** @returns the reason, as text, if nothing is derived */
function choose(
  { coordinate, parent, verdict }: FoundList,
  { overrides, byId }: Omit<Deciding, 'names'>,
  schema: GraphQLSchema,
): { readonly paged: PagedField; readonly reach: ByIdField | undefined } | string {
  if (typeof verdict === 'string') return `${verdict}.`;
  if (overrides.fields[coordinate]?.skip) return 'adapters.json skips it.';
  if (parent === schema.getQueryType()) return { paged: verdict, reach: undefined };
  if (isInterfaceType(parent)) {
    return `${parent.name} is an interface, and fields are derived only for object types. Request it inside "... on" one of them.`;
  }
  const reach = byId.get(parent);
  if (reach) return { paged: verdict, reach };
  return (
    `further pages cannot be requested, because no root field returns a ${parent.name} by its id alone. ` +
    `If one does, write it in adapters.json: "types": { "${parent.name}": { "byId": "…" } }.`
  );
}

function reportOf(
  { coordinate }: FoundList,
  why: readonly string[],
  { all, connection, reach }: Partial<Adapter> = {},
): Report {
  const facts = {
    all: all?.field,
    connection: connection && `${connection.field} (${connection.type}, ${connection.edge})`,
    parent: reach && `reached again by ${reach.field}(${reach.argument.name}: …)`,
  };
  return { subject: coordinate, facts, why };
}

function reasons(
  { coordinate }: FoundList,
  { field, first, after, filters, recordType, nodeType, result, identity }: Adapter,
): string[] {
  const carried = [first, after, ...filters];
  const omitted = field.args.filter((argument) => !carried.includes(argument));
  const kind = isNonNullType(recordType) ? nodeType.name : `${nodeType.name} or null`;
  return [
    `it takes first and ${after.name}, and returns pages of ${kind}.`,
    ...omitted.map(
      ({ name }) =>
        `its filter ${name} is left out, because an argument of the gateway is called so.`,
    ),
    ...(result ? [describeResult(result)] : []),
    ...(identity === undefined
      ? [
          `it has no connection, because ${nodeType.name} has no plain field id, so that a cursor cannot name a record. ` +
            `If another field identifies a record, write it in adapters.json: "fields": { "${coordinate}": { "identity": "…" } }.`,
        ]
      : []),
  ];
}
