import { isInterfaceType, isNonNullType, type GraphQLSchema } from 'graphql';
import type { Adapter, NestedAdapter } from './adapter.ts';
import {
  checkOverrides,
  OverridesError,
  type AdapterOverrides,
  type FieldOverride,
} from './adapter-overrides.ts';
import { findLists, type FoundList } from './find-lists.ts';
import type { PagedField } from './find-paged-fields.ts';
import { derivedNames } from './name-adapters.ts';
import { describeReach, reachParent, type Reach, type TypeOverrides } from './reach-parent.ts';
import type { RootNames } from './root-names.ts';

/** What became of one list, for `schema explain`. */
export interface ListReport {
  /** For example `Vacancy.candidates`. */
  readonly list: string;
  /** Whether it gives pages, or what looks like them. */
  readonly inPages: boolean;
  readonly all: string | null;
  readonly connection: string | null;
  /** What the types of the connection are called; null without one. */
  readonly types: { readonly connection: string; readonly edge: string } | null;
  /** How the parent is reached again; null at the root, or where it is not. */
  readonly parent: string | null;
  /** Arguments of ours that stepped aside for a filter, by the field that has them. */
  readonly renamed: Readonly<Record<string, string>>;
  readonly why: readonly string[];
}

export interface AdapterPlan {
  /** Of the root. */
  readonly adapters: readonly Adapter[];
  readonly nested: readonly NestedAdapter[];
  /** Why something was not derived, for a start-up warning. */
  readonly warnings: readonly string[];
  readonly reports: readonly ListReport[];
  /** How the operator wants records to be found by their ids. */
  readonly types: TypeOverrides;
}

/**
 * Names everything that is derived. A name that the upstream uses itself is left to it, and said.
 *
 * @param schema the upstream as it is served, so with `PageInfo` already renamed
 * @param json what adapters.json says, as it was read
 * @throws OverridesError
 */
export function planAdapters(schema: GraphQLSchema, names: RootNames, json?: unknown): AdapterPlan {
  const lists = findLists(schema);
  const { overrides, mistakes } = checkOverrides(json, schema, lists);
  const chosen = lists.map((list) => {
    const verdict = choose(list, overrides, schema);
    return { list, verdict, override: overrides.fields.get(keyOf(list)) ?? {} };
  });
  const paged = chosen.flatMap(({ verdict }) => ('paged' in verdict ? verdict.paged : []));
  const given = derivedNames(schema, paged, names, overrides.types);

  const adapters: Adapter[] = [];
  const nested: NestedAdapter[] = [];
  const reports = chosen.map(({ list, verdict, override }) => {
    if ('why' in verdict) return notDerived(list, verdict.why);
    const { paged: field, reach } = verdict;
    const { adapter, why } = given.of(list.parent.name, field, override);
    if (reach) nested.push({ ...adapter, reach });
    else adapters.push(adapter);
    return derived(adapter, reach, [...reasons(adapter, override), ...why]);
  });
  const all = [...mistakes, ...given.mistakes];
  if (all.length > 0) throw new OverridesError(all);
  return { adapters, nested, warnings: given.warnings, reports, types: overrides.types };
}

type Choice =
  { readonly paged: PagedField; readonly reach: Reach | undefined } | { readonly why: string };

function choose(list: FoundList, overrides: AdapterOverrides, schema: GraphQLSchema): Choice {
  const { parent, verdict } = list;
  if ('why' in verdict) return { why: `${verdict.why}.` };
  if (overrides.fields.get(keyOf(list))?.skip) return { why: 'adapters.json skips it.' };
  const { paged } = verdict;
  if (parent === schema.getQueryType()) return { paged, reach: undefined };
  if (isInterfaceType(parent)) {
    return {
      why: `${parent.name} is an interface: what is derived stands on its object types, so ask inside "... on" one of them.`,
    };
  }
  const reach = reachParent(schema, parent, overrides.types);
  return typeof reach === 'string' ? { why: reach } : { paged, reach };
}

function keyOf({ parent, name }: FoundList): string {
  return `${parent.name}.${name}`;
}

function notDerived(list: FoundList, why: string): ListReport {
  return {
    list: keyOf(list),
    inPages: list.givesPages,
    all: null,
    connection: null,
    types: null,
    parent: null,
    renamed: {},
    why: [why],
  };
}

function derived(
  { parent, name, all, connection }: Adapter,
  reach: Reach | undefined,
  why: readonly string[],
): ListReport {
  const ours = [
    ...(all ? [[`${all.field}(limit)`, 'limit', all.limit] as const] : []),
    ...(connection
      ? [
          [`${connection.field}(last)`, 'last', connection.last] as const,
          [`${connection.field}(before)`, 'before', connection.before] as const,
        ]
      : []),
  ];
  return {
    list: `${parent}.${name}`,
    inPages: true,
    all: all?.field ?? null,
    connection: connection?.field ?? null,
    types: connection ? { connection: connection.type, edge: connection.edge } : null,
    parent: reach ? describeReach(reach) : null,
    renamed: Object.fromEntries(
      ours.flatMap(([place, usual, actual]) => (usual === actual ? [] : [[place, actual]])),
    ),
    why,
  };
}

function reasons({ recordType, nodeType }: Adapter, override: FieldOverride): string[] {
  const kind = isNonNullType(recordType) ? nodeType.name : `${nodeType.name} or null`;
  return [
    `it takes first and after, and gives pages of ${kind}.`,
    ...(override.all || override.connection ? ['adapters.json names it.'] : []),
  ];
}
