import DataLoader from 'dataloader';
import type { UpstreamError } from '../answers/answer-errors.ts';
import type { Reading } from '../answers/reading.ts';
import type { ListRecord } from './output.ts';

/** An id as the upstream takes it, as JSON. */
export type RecordId = string;

/** Finds the records of one type by their ids, with one selection of their fields. */
export interface RecordLookup {
  /** Equal for lookups that send the same to the upstream. */
  readonly name: string;
  /** By how many bytes the caller's aliases lengthen each record. */
  readonly aliasBytes: number;
  /** @returns a result for each id; none for an id without a record */
  find(ids: readonly RecordId[]): Promise<FoundById>;
}

type FoundById = ReadonlyMap<RecordId, LookupResult>;

/** An error means that it is unknown whether there is such a record. */
export type LookupResult = FoundRecord | Error;

export interface FoundRecord {
  /** Bytes where a scanner took the record. */
  readonly record: ListRecord | Reading | Buffer;
  readonly unplacedErrors: readonly UpstreamError[];
}

/** Returns what was found for an id that was loaded; undefined if there is no such record. */
export type LoadedRecords = (id: RecordId) => LookupResult | undefined;

/**
 * Loads the records that an operation wants by their ids: each once, those of one selection together. A field may refer
 * to ten thousand, so the data loader has an entry for each field, and none for each record.
 */
export class RecordLoader {
  /** By the names of their lookups, then by id: the promise that is kept for all records that were looked up together. */
  readonly #selections = new Map<string, Map<RecordId, Promise<FoundById>>>();
  readonly #fields = new DataLoader<Wanted, LoadedRecords>((wanted) => this.#loadAll(wanted), {
    cache: false,
  });

  load(lookup: RecordLookup, ids: readonly RecordId[]): Promise<LoadedRecords> {
    return this.#fields.load({ lookup, ids });
  }

  async #loadAll(wanted: readonly Wanted[]): Promise<LoadedRecords[]> {
    for (const some of Map.groupBy(wanted, ({ lookup }) => lookup.name).values()) {
      this.#begin(some[0]!.lookup, some);
    }
    return Promise.all(wanted.map((one) => this.#loaded(one)));
  }

  /** Begins to look up what was not wanted before. */
  #begin(lookup: RecordLookup, wanted: readonly Wanted[]): void {
    const selection = this.#selections.get(lookup.name) ?? new Map<RecordId, Promise<FoundById>>();
    this.#selections.set(lookup.name, selection);
    const { promise: found, resolve } = Promise.withResolvers<FoundById>();
    const missing: RecordId[] = [];
    for (const { ids } of wanted) {
      for (const id of ids) {
        if (selection.has(id)) continue;
        selection.set(id, found);
        missing.push(id);
      }
    }
    if (missing.length > 0) resolve(lookup.find(missing).catch(allFailed(missing)));
  }

  async #loaded({ lookup, ids }: Wanted): Promise<LoadedRecords> {
    const selection = this.#selections.get(lookup.name)!;
    const found = new Map<Promise<FoundById>, FoundById>();
    for (const one of new Set(ids.map((id) => selection.get(id)!))) found.set(one, await one);
    return (id) => found.get(selection.get(id)!)!.get(id);
  }
}

interface Wanted {
  readonly lookup: RecordLookup;
  readonly ids: readonly RecordId[];
}

function allFailed(ids: readonly RecordId[]) {
  return (error: unknown): FoundById => new Map(ids.map((id) => [id, asError(error)]));
}

export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('The lookup failed.', { cause: error });
}
