import {
  getNamedType,
  GraphQLInt,
  GraphQLString,
  Kind,
  type GraphQLLeafType,
  type GraphQLOutputType,
  type SelectionNode,
} from 'graphql';
import { causeOf } from '../paging/page.ts';
import type { LookUpList } from '../paging/look-up.ts';
import type { Adapter, ByIdField, Entity } from '../schema/derived.ts';
import {
  JsonText,
  pathOf,
  withPath,
  type AnswerError,
  type FieldValue,
  type Path,
} from './answer.ts';
import type { Call } from './call.ts';
import type { Shared } from './shared.ts';
import { identityText } from './identity.ts';
import { ByIds, loadTogether } from './by-ids.ts';
import { isJsonObject } from './json.ts';
import { ListPages } from './list-pages.ts';
import type { ListRecord } from './list-record.ts';
import { compileMend, mended, type Mend } from './mend.ts';
import { asQuery, type PreparedOperation } from './prepared-operation.ts';
import { selectedFields } from './selected-fields.ts';
import {
  errorsAt,
  readServiceAnswer,
  ServiceFailure,
  type ServiceAnswer,
} from './service-answer.ts';
import { EMPTY_KEY, fragmentNode, orTypename } from './syntax.ts';

/** A record that was looked up; null if there is none. */
type LoadedRecord = {
  readonly text: string;
  readonly errors: readonly AnswerError[];
} | null;

/** Loads records of one type by their ids, with one selection of their fields. Compiled once. */
export interface RecordLoads {
  /** @param id as `readId` returns it */
  load(call: Call, id: RecordId): Promise<LoadedRecord>;
}

/** An id as the service takes it, as JSON. */
export type RecordId = string;

/** @param entity with a lookup @param selections of each record */
export function recordLoads(
  shared: Shared,
  prepared: PreparedOperation,
  entity: Entity,
  selections: readonly SelectionNode[],
): RecordLoads {
  const query = asQuery(prepared);
  const lookup = entity.lookup!;
  return lookup.kind === 'id'
    ? new RecordsById(shared, query, { entity, found: lookup, selections })
    : new RecordsInList(shared, query, { entity, found: lookup.adapter, selections });
}

/** Makes the value of a field of its record. @param path of the field */
export async function recordValue(loading: Promise<LoadedRecord>, path: Path): Promise<FieldValue> {
  try {
    const record = await loading;
    if (!record) return { value: null, errors: [] };
    const errors = record.errors.map((error) => withPath(error, [...path, ...pathOf(error)]));
    return { value: JsonText.of(record.text), errors };
  } catch (error) {
    return { value: null, errors: errorsAt(causeOf(error), path) };
  }
}

interface RecordsParts<Found> {
  readonly entity: Entity;
  /** What they are found by. */
  readonly found: Found;
  readonly selections: readonly SelectionNode[];
}

/** Records that a field of the service returns by their ids, up to 50 in a request. */
class RecordsById implements RecordLoads {
  readonly #field: string;
  readonly #byIds: ByIds;
  readonly #mend: Mend | undefined;

  constructor(
    shared: Shared,
    prepared: PreparedOperation,
    { entity, found: by, selections }: RecordsParts<ByIdField>,
  ) {
    this.#field = by.field;
    this.#byIds = new ByIds(shared, prepared, by, orTypename(selections));
    const set = { kind: Kind.SELECTION_SET, selections } as const;
    const fields = selectedFields(set, prepared.fragments);
    this.#mend = compileMend(shared, prepared, entity.type, fields);
  }

  load(call: Call, id: RecordId): Promise<LoadedRecord> {
    const name = `${this.#field} ${this.#byIds.request(1).nameWith(call.variables.sent)}`;
    const loader = call.loader<LoadedRecord>(name, (ids) =>
      loadTogether(
        ids,
        (records) => this.#byIds.request(records).pages,
        (some, pages) => this.#ask(call, some, pages),
        (answer, at) => this.#recordIn(call, answer, at),
      ),
    );
    return loader.load(id);
  }

  async #ask(call: Call, ids: readonly RecordId[], pages: number): Promise<ServiceAnswer> {
    const request = this.#byIds.request(ids.length);
    const outgoing = request.with(call.variables.sent, this.#byIds.values(ids));
    return readServiceAnswer(await call.ask(outgoing, pages));
  }

  async #recordIn(call: Call, answer: ServiceAnswer, at: number): Promise<LoadedRecord> {
    const { value, errors, failure } = this.#byIds.read(answer, at);
    if (failure) throw new ServiceFailure([failure]);
    const isNull = value === null || value === undefined;
    if (isNull && errors.length === 0) return null;
    if (answer.data === undefined) throw new ServiceFailure(answer.errors);
    // An error without a place may explain any null, but no record.
    const own = errors.filter(({ error }) => isNull || error.path !== undefined);
    const placed = own.map(({ error, path }): AnswerError => ({ service: { ...error, path } }));
    return this.#textOf(call, value ?? null, placed);
  }

  async #textOf(call: Call, value: unknown, errors: AnswerError[]): Promise<LoadedRecord> {
    // JSON.stringify leaves it out.
    if (isJsonObject(value) && EMPTY_KEY in value) value[EMPTY_KEY] = undefined;
    if (this.#mend) {
      const inside = await mended(this.#mend, value, call);
      for (const { error, path } of inside) errors.push(withPath(error, path));
    }
    return { text: JSON.stringify(value), errors };
  }
}

/** Records that are looked up in a list: see `LookUps`. */
class RecordsInList implements RecordLoads {
  readonly #shared: Shared;
  readonly #entity: Entity;
  readonly #adapter: Adapter;
  readonly #pages: ListPages;

  constructor(
    shared: Shared,
    prepared: PreparedOperation,
    { entity, found: adapter, selections }: RecordsParts<Adapter>,
  ) {
    this.#shared = shared;
    this.#entity = entity;
    this.#adapter = adapter;
    // A list may have records of several types.
    const isOnly = adapter.nodeType === entity.type || selections.length === 0;
    const own = isOnly ? selections : [fragmentNode(entity.type.name, selections)];
    this.#pages = new ListPages(shared, prepared, { adapter, places: [own] });
  }

  async load(call: Call, id: RecordId): Promise<LoadedRecord> {
    const name = `${this.#adapter.name} ${this.#entity.type.name} ${this.#pages.nameWith(call.variables.sent)}`;
    const loader = call.loader<LoadedRecord>(name, (ids) => this.#loadAll(call, ids));
    return loader.load(identityText(this.#entity.type, JSON.parse(id))!);
  }

  async #loadAll(call: Call, ids: readonly string[]): Promise<readonly (LoadedRecord | Error)[]> {
    const { name } = this.#adapter;
    const list: LookUpList<ListRecord> = {
      ...this.#pages.listFor(call, { name, isOverhead: true }),
      idsFor: (readers) =>
        this.#pages.bare.listFor(this.#shared.walkRequester(call, readers), { name }),
    };
    const { signal, caller, operation, budget } = call;
    const found = await this.#shared.lists.lookUps.find(list, ids, {
      signal,
      caller,
      operation,
      budget: budget.forOverhead,
    });
    return ids.map((id) => {
      const result = found.get(id);
      if (!result) return null;
      if ('error' in result) return result.error as Error;
      const { texts, errors } = result.record;
      return {
        text: texts[0]!,
        errors: errors.map(({ error, path }) => withPath(error, path)),
      };
    });
  }
}

/**
 * Converts an id to the service's scalar: one subgraph sends 12, another "12".
 *
 * @returns undefined for a value that cannot be such an id
 */
export function readId(value: unknown, entity: Entity): RecordId | undefined {
  const type = idTypeOf(entity);
  let id = value;
  if (type === GraphQLInt && typeof value === 'string' && value !== '') id = Number(value);
  if (type === GraphQLString && typeof value === 'number') id = String(value);
  try {
    return JSON.stringify(type.parseValue(id));
  } catch {
    return undefined;
  }
}

/** The type of the ids of an entity, as the service takes them. */
export function idTypeOf({ lookup, idType }: Entity): GraphQLLeafType {
  const type = lookup?.kind === 'id' ? lookup.argument.type : idType;
  return getNamedType(type as GraphQLOutputType) as GraphQLLeafType;
}
