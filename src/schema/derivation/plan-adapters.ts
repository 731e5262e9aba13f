import {
  isAbstractType,
  isInterfaceType,
  isNonNullType,
  isObjectType,
  type GraphQLSchema,
} from 'graphql';
import type {
  Adapter,
  FieldOverride,
  NestedAdapter,
  PagedField,
  Reach,
  TypeOverrides,
} from '../derived.ts';
import {
  type AdapterOverrides,
  checkOverrides,
  OverridesError,
  readOverrides,
} from './adapter-overrides.ts';
import { describeReach, reachParent } from './reach-parent.ts';
import type { RootNames } from '../names/root-names.ts';
import { findLists, type FoundList } from './find-lists.ts';
import { identityToWrite, isIdentified } from './identity.ts';
import { describeResult } from './find-results.ts';
import { derivedNames } from './name-adapters.ts';

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
  /** Arguments of ours that were renamed because of a filter, by `field(argument)`. */
  readonly renamed: Readonly<Record<string, string>>;
  readonly why: readonly string[];
}

export interface AdapterPlan {
  /** The adapters of the query root. */
  readonly adapters: readonly Adapter[];
  readonly nested: readonly NestedAdapter[];
  /** Why fields were not derived, for warnings at the start. */
  readonly warnings: readonly string[];
  readonly reports: readonly ListReport[];
  /** What adapters.json decides about types. */
  readonly types: TypeOverrides;
}

/**
 * Decides which adapters are derived from the lists of the schema, and their names. A name that the upstream uses
 * itself is not derived, with a warning.
 *
 * @param schema the upstream under served names, so with `PageInfo` already renamed
 * @param json the parsed adapters.json
 * @throws OverridesError
 */
export function planAdapters(schema: GraphQLSchema, names: RootNames, json?: unknown): AdapterPlan {
  const read = readOverrides(json);
  const lists = findLists(schema, read.fields);
  const { overrides, mistakes } = checkOverrides(read, schema, lists);
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
    const ofIdentity = identityReasons(adapter, override, schema);
    return derived(adapter, reach, [...reasons(adapter, override), ...ofIdentity, ...why]);
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
  const { skip, identity, count } = overrides.fields.get(keyOf(list)) ?? {};
  if (skip) return { why: 'adapters.json skips it.' };
  const paged = {
    ...verdict.paged,
    ...(identity && { identity }),
    ...(count !== undefined && { count: count ?? undefined }),
  };
  if (parent === schema.getQueryType()) return { paged, reach: undefined };
  if (isInterfaceType(parent)) {
    return {
      why: `${parent.name} is an interface, and fields are derived only for object types. Request it inside "... on" one of them.`,
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
    ...(all
      ? [
          [`${all.field}(limit)`, 'limit', all.limit] as const,
          [`${all.field}(after)`, 'after', all.after] as const,
        ]
      : []),
    ...(connection
      ? [
          [`${connection.field}(after)`, 'after', connection.after] as const,
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

function reasons(
  { after, recordType, nodeType, result, count, connection }: Adapter,
  override: FieldOverride,
): string[] {
  const kind = isNonNullType(recordType) ? nodeType.name : `${nodeType.name} or null`;
  return [
    `it takes first and ${after.name}, and returns pages of ${kind}.`,
    ...(result ? [describeResult(result, 'an error of the list')] : []),
    ...(override.all || override.connection ? ['adapters.json names it.'] : []),
    ...(count === undefined
      ? []
      : [
          `${count} of its pages ${connection ? 'is its totalCount' : 'is compared with what is read'}, once it has proved to count all pages.`,
        ]),
  ];
}

/** Says what identifies its records, where that is not simply their id. */
function identityReasons(
  { parent, name, nodeType, identity }: Adapter,
  override: FieldOverride,
  schema: GraphQLSchema,
): string[] {
  if (override.identity) {
    const paths = identity.map((path) => path.join('.')).join(', ');
    return [`adapters.json identifies its records by ${paths}.`];
  }
  const types = isAbstractType(nodeType) ? schema.getPossibleTypes(nodeType) : [nodeType];
  const without = types.filter((type) => isObjectType(type) && !isIdentified(type, [['id']]));
  if (identity.length > 0) {
    return without.map(
      (type) =>
        `${type.name} has no plain field id: if the list changes meanwhile, some of its records may come twice.`,
    );
  }
  return [
    `it has no connection, because ${nodeType.name} has no plain field id, so that a cursor cannot name a record. ` +
      'If other fields together identify a record, write them in adapters.json: ' +
      `${identityToWrite(`${parent}.${name}`, without)}.`,
  ];
}
