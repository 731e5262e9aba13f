import DataLoader from 'dataloader';
import type { UpstreamError } from '../answers/answer-errors.ts';
import type { Reading } from '../answers/read.ts';
import type { ListRecord } from './output.ts';

/** An id as the upstream takes it, as JSON. */
export type RecordId = string;

/** Finds the records of one type by their ids, with one selection of their fields. */
export interface RecordLookup {
  /** Equal for lookups that send the same to the upstream. */
  readonly name: string;
  /** By how many bytes the caller's aliases lengthen each record. */
  readonly aliasBytes: number;
  /** @returns a result for each id, in their order; undefined for an id without a record */
  find(ids: readonly RecordId[]): Promise<LookupResults>;
}

type LookupResults = readonly (LookupResult | undefined)[];

export type LookupResult = FoundRecord | FailedLookup;

/** It is unknown whether there is such a record. No rejected promise: thousands of those would be slow. */
interface FailedLookup {
  readonly failure: Error;
}

interface FoundRecord {
  /** Bytes if a scanner read the record. */
  readonly record: ListRecord | Reading | Buffer;
  readonly unplacedErrors: readonly UpstreamError[];
}

/**
 * Loads the records that an operation wants by their ids: each once for one selection of fields, those that are wanted at
 * the same time together.
 */
export class RecordLoader {
  /** By the names of their lookups. */
  readonly #loaders = new Map<string, DataLoader<RecordId, LookupResult | undefined>>();

  /** @returns a result for each id, in their order; undefined for an id without a record */
  load(lookup: RecordLookup, ids: readonly RecordId[]): Promise<LookupResults> {
    const loader = this.#loaderFor(lookup);
    return Promise.all(ids.map((id) => loader.load(id)));
  }

  #loaderFor(lookup: RecordLookup): DataLoader<RecordId, LookupResult | undefined> {
    const known = this.#loaders.get(lookup.name);
    if (known) return known;
    const loader = new DataLoader((ids: readonly RecordId[]) => findAll(lookup, ids));
    this.#loaders.set(lookup.name, loader);
    return loader;
  }
}

async function findAll(lookup: RecordLookup, ids: readonly RecordId[]): Promise<LookupResults> {
  try {
    return await lookup.find(ids);
  } catch (error) {
    // Kept like any result, so an operation does not request it again.
    const failed = failedLookup(error);
    return ids.map(() => failed);
  }
}

export function failedLookup(error: unknown): FailedLookup {
  const failure =
    error instanceof Error ? error : new Error('The lookup failed.', { cause: error });
  return { failure };
}
