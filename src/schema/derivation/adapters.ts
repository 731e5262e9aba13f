import { isInterfaceType, isNonNullType, type GraphQLSchema } from 'graphql';
import {
  fieldAt,
  type Adapter,
  type ListKind,
  type NestedAdapter,
  type ByIdField,
  type PagedField,
  type Report,
} from '../derived.ts';
import { LIST_FIELDS } from '../derived-fields.ts';
import type { ServedNames } from '../names.ts';
import { reachParent } from './by-id.ts';
import { findLists, type FoundList } from './lists.ts';
import { checkOverrides } from './check-overrides.ts';
import type { Overrides } from './overrides.ts';
import { describeResult } from './results.ts';

interface AdapterPlan {
  /** The adapters of the query root. */
  readonly adapters: readonly Adapter[];
  readonly nested: readonly NestedAdapter[];
  /** Why fields were not derived, for warnings at the start. */
  readonly warnings: readonly string[];
  readonly reports: readonly Report[];
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
    const usual = reach ? paged.name : names.upstream(paged.name);
    const fields = Object.entries(LIST_FIELDS).map(([kind, { nameOf, types }]) => {
      const ofTypes = types(paged, schema, names);
      if (typeof ofTypes === 'string') clashes.push(ofTypes);
      if (typeof ofTypes !== 'object') return [kind, undefined];
      const field = reach ? nameOf(usual) : names.derived(nameOf(usual));
      const place = `${parent}.${field}`;
      if (derived.has(place) || fieldAt(schema, parent, field)) {
        clashes.push(`${place} is not derived: a field of that name already exists.`);
        return [kind, undefined];
      }
      derived.add(place);
      return [kind, { field, ...ofTypes }];
    });
    const adapter: Adapter = {
      ...paged,
      parent,
      page: overrides.fields[list.coordinate]?.page,
      ...(Object.fromEntries(fields) as Pick<Adapter, ListKind>),
    };
    if (reach) nested.push({ ...adapter, reach });
    else adapters.push(adapter);
    warnings.push(...clashes);
    return reportOf(list, [...reasons(list, adapter), ...clashes], adapter, reach);
  });
  return { adapters, nested, warnings, reports };
}

/** @returns the reason, as text, if nothing is derived */
function choose(
  { coordinate, parent, verdict }: FoundList,
  { fields, types }: Overrides,
  schema: GraphQLSchema,
): { readonly paged: PagedField; readonly reach: ByIdField | undefined } | string {
  if (typeof verdict === 'string') return `${verdict}.`;
  if (fields[coordinate]?.skip) return 'adapters.json skips it.';
  if (parent === schema.getQueryType()) return { paged: verdict, reach: undefined };
  if (isInterfaceType(parent)) {
    return `${parent.name} is an interface, and fields are derived only for object types. Request it inside "... on" one of them.`;
  }
  const reach = reachParent(schema, parent, types);
  return typeof reach === 'string' ? reach : { paged: verdict, reach };
}

function reportOf(
  { coordinate }: FoundList,
  why: readonly string[],
  { all, connection }: Partial<Adapter> = {},
  reach?: ByIdField,
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
    ...(result ? [describeResult(result, 'an error of the list')] : []),
    ...(identity === undefined
      ? [
          `it has no connection, because ${nodeType.name} has no plain field id, so that a cursor cannot name a record. ` +
            `If another field identifies a record, write it in adapters.json: "fields": { "${coordinate}": { "identity": "…" } }.`,
        ]
      : []),
  ];
}
