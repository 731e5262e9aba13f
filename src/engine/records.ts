import { GraphQLInt, GraphQLString, type SelectionNode } from 'graphql';
import type { LookUpList } from '../paging/look-up.ts';
import type { Adapter, ByIdField, Entity } from '../schema/derived.ts';
import { JsonText, type FieldValue } from './answer.ts';
import { compileByIds } from './by-ids.ts';
import type { Call } from './call.ts';
import { identityText } from './identity.ts';
import { isJsonObject } from './json.ts';
import { listPages } from './list-pages.ts';
import { compileMend, mended } from './mend.ts';
import type { PageRecords } from './page-records.ts';
import type { PreparedOperation } from './prepared-operation.ts';
import { selectedFields } from './selected-fields.ts';
import { dataOf, readServiceAnswer, type PlacedValue } from './service-answer.ts';
import type { Shared } from './shared.ts';
import { EMPTY_KEY, fragmentNode, orTypename } from './syntax.ts';

/** Loads a record by its id: those that are needed at the same time together. Null without an error: there is none. */
export type LoadRecord = (call: Call, id: RecordId) => Promise<FieldValue>;

/** An id as the service takes it, as JSON. */
type RecordId = string;

/** Compiles how records of an entity are loaded. @param entity with a lookup @param selections of each record */
export function recordLoader(
  shared: Shared,
  prepared: PreparedOperation,
  entity: Entity,
  selections: readonly SelectionNode[],
): LoadRecord {
  const lookup = entity.lookup!;
  return lookup.kind === 'id'
    ? recordsById(shared, prepared, entity, lookup, selections)
    : recordsInList(shared, prepared, entity, lookup.adapter, selections);
}

const NO_RECORD: FieldValue = { value: null, errors: [] };

/** Records that a field of the service returns by their ids, up to 50 in a request. */
function recordsById(
  shared: Shared,
  prepared: PreparedOperation,
  { type }: Entity,
  byId: ByIdField,
  selections: readonly SelectionNode[],
): LoadRecord {
  const byIds = compileByIds(shared, prepared, byId, orTypename(selections));
  const fields = selectedFields({ selections }, prepared.fragments);
  const mending = compileMend(shared, prepared, [type], fields);

  const recordIn = async (call: Call, { value, errors }: PlacedValue): Promise<FieldValue> => {
    const isNull = value === null || value === undefined;
    if (isNull && errors.length === 0) return NO_RECORD;
    // JSON.stringify leaves it out.
    if (isJsonObject(value) && EMPTY_KEY in value) value[EMPTY_KEY] = undefined;
    // An error without a place may explain any null, but no record.
    const own = errors.filter(({ path }) => isNull || path !== undefined);
    const inside = mending ? await mended(mending, value, call) : [];
    return { value: new JsonText([JSON.stringify(value ?? null)]), errors: [...own, ...inside] };
  };

  return (call, id) => {
    const { sent } = call.variables;
    const name = `${byId.field} ${byIds.request(1).nameWith(sent)}`;
    const loader = call.loader<FieldValue>(name, (ids) =>
      byIds.load(ids, {
        sent,
        ask: async (request, pages) => dataOf(readServiceAnswer(await call.ask(request, pages))),
        read: (placed) => recordIn(call, placed),
      }),
    );
    return loader.load(id);
  };
}

/** Records that are looked up in a list: see `LookUps`. */
function recordsInList(
  shared: Shared,
  prepared: PreparedOperation,
  { type }: Entity,
  adapter: Adapter,
  selections: readonly SelectionNode[],
): LoadRecord {
  const { name } = adapter;
  // A list may have records of several types.
  const isOnly = adapter.nodeType === type || selections.length === 0;
  const own = isOnly ? selections : [fragmentNode(type.name, selections)];
  const pages = listPages(shared, prepared, adapter, [own]);

  const lookUp = async (call: Call, ids: readonly string[]) => {
    const reader = call.forOverhead();
    const list: LookUpList<PageRecords> = {
      ...pages.listFor(reader, { name }),
      idsFor: (readers) => pages.bare.listFor(call.forWalk(readers), { name }),
    };
    const found = await shared.lists.lookUps.find(list, ids, reader);
    return ids.map((id): FieldValue | Error => {
      const result = found.get(id);
      if (!result) return NO_RECORD;
      if ('error' in result) return result.error as Error;
      const { page, offset } = result.place;
      const value = new JsonText([JSON.stringify(page.records.valueAt(offset))]);
      const errors = page.records.errorsAt(offset);
      return { value, errors: errors.map((error) => ({ ...error, path: error.path?.slice(1) })) };
    });
  };

  return (call, id) => {
    const named = `${name} ${type.name} ${pages.nameWith(call.variables.sent)}`;
    // All together: each lookup reads the whole index of the list.
    const loader = call.loader<FieldValue>(named, (ids) => lookUp(call, ids), Infinity);
    return loader.load(identityText(type, JSON.parse(id))!);
  };
}

/**
 * Converts an id to the service's scalar: one subgraph sends 12, another "12".
 *
 * @returns undefined for a value that cannot be such an id
 */
export function readId(value: unknown, { idType: type }: Entity): RecordId | undefined {
  let id = value;
  if (type === GraphQLInt && typeof value === 'string' && value !== '') id = Number(value);
  if (type === GraphQLString && typeof value === 'number') id = String(value);
  try {
    return JSON.stringify(type.parseValue(id));
  } catch {
    return undefined;
  }
}
