import { isNonNullType, type GraphQLSchema } from 'graphql';
import { findPagedFields, type PagedField } from './find-paged-fields.ts';

/** What a paged list gets, with the names that it gets it under. */
export interface Adapter extends PagedField {
  /** Undefined where the upstream has that name already. */
  readonly all:
    { readonly field: string; readonly limit: string; readonly after: string } | undefined;
  readonly connection:
    { readonly field: string; readonly type: string; readonly edge: string } | undefined;
}

export interface AdapterPlan {
  readonly adapters: readonly Adapter[];
  /** Why something was not derived, for a start-up warning. */
  readonly warnings: readonly string[];
}

export const RELAY_PAGE_INFO = 'PageInfo';

/**
 * Names everything that is derived. A name that the upstream uses itself is left to it, and said.
 *
 * @param schema the upstream as it is served, so with `PageInfo` already renamed
 */
export function planAdapters(schema: GraphQLSchema): AdapterPlan {
  const warnings: string[] = [];
  const lists = findPagedFields(schema).flatMap((verdict) =>
    'paged' in verdict ? [verdict.paged] : [],
  );
  const rootFields = new Set(Object.keys(schema.getQueryType()?.getFields() ?? {}));
  // Of every derived type the kind of record it holds: lists of one kind share it, others may not.
  const derived = new Map<string, string>();
  const freeField = (name: string) => {
    if (!rootFields.has(name)) return true;
    warnings.push(`Query.${name} is not derived: there is a field of that name.`);
    return false;
  };
  const freeType = (name: string, { recordType }: PagedField) => {
    const holds = derived.get(name);
    if (!schema.getType(name) && (!holds || holds === String(recordType))) return true;
    warnings.push(`The type ${name} is not derived: there is a type of that name.`);
    return false;
  };

  const adapters = lists.map((list) => {
    const all = { field: `all${capitalised(list.name)}`, ...drainArguments(list) };
    const connection = { field: `${list.name}Connection`, ...connectionTypes(list, lists) };
    const hasAll = freeField(all.field);
    const hasConnection =
      freeField(connection.field) &&
      freeType(connection.type, list) &&
      freeType(connection.edge, list);
    if (hasAll) rootFields.add(all.field);
    if (hasConnection) {
      rootFields.add(connection.field);
      derived.set(connection.type, String(list.recordType));
      derived.set(connection.edge, String(list.recordType));
    }
    return {
      ...list,
      all: hasAll ? all : undefined,
      connection: hasConnection ? connection : undefined,
    };
  });
  return { adapters, warnings };
}

/** Our own argument steps aside for a filter of the same name: `limit` becomes `drainLimit`, and then `drainLimit_`. */
function drainArguments({ filters }: PagedField) {
  const taken = new Set(filters.map(({ name }) => name));
  let limit = taken.has('limit') ? 'drainLimit' : 'limit';
  while (taken.has(limit)) limit += '_';
  return { limit, after: 'after' };
}

/**
 * Connection types are named after the node. Where one node is listed both as `[Node!]` and as `[Node]`,
 * the second kind is called `Nullable…`, since its edges promise less.
 */
function connectionTypes(list: PagedField, lists: readonly PagedField[]) {
  const node = list.nodeType.name;
  const hasTwoKinds =
    !isNonNullType(list.recordType) &&
    lists.some((other) => other.nodeType === list.nodeType && isNonNullType(other.recordType));
  const name = hasTwoKinds ? `Nullable${node}` : node;
  return { type: `${name}Connection`, edge: `${name}Edge` };
}

function capitalised(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
