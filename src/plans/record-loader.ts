import DataLoader from 'dataloader';
import type { UpstreamError } from '../answers/errors.ts';
import type { Reading } from '../answers/read.ts';
import type { ListRecord } from './list-record.ts';

/** An id as the upstream takes it. */
export type RecordId = string | number;

/** One selection of the records of one type, and the way to find them by their ids. */
export interface RecordLookup {
  /** The same for all that ask the upstream for the same. */
  readonly name: string;
  /** @returns for each id what was found; nothing for those of which there is no record */
  find(ids: readonly RecordId[]): Promise<ReadonlyMap<RecordId, Finding>>;
}

export interface FoundRecord {
  readonly record: ListRecord | Reading;
  /** What came with it and stands at no record. */
  readonly beside: readonly UpstreamError[];
}

/** An error: nobody can tell whether there is such a record. */
export type Finding = FoundRecord | Error;

export interface WantedRecord {
  readonly lookup: RecordLookup;
  readonly id: RecordId;
}

export type RecordLoader = DataLoader<WantedRecord, FoundRecord | null, string>;

/** The records that one operation asks for by their ids: those of one selection together, and each once. */
export function createRecordLoader(): RecordLoader {
  return new DataLoader(
    async (wanted) => {
      const found = new Map<string, ReadonlyMap<RecordId, Finding>>();
      await Promise.all(
        Array.from(
          Map.groupBy(wanted, ({ lookup }) => lookup.name),
          async ([name, records]) => {
            const ids = records.map(({ id }) => id);
            found.set(name, await records[0]!.lookup.find(ids).catch(allFailed(ids)));
          },
        ),
      );
      return wanted.map(({ lookup, id }) => found.get(lookup.name)?.get(id) ?? null);
    },
    { cacheKeyFn: ({ lookup, id }) => `${typeof id} ${id} ${lookup.name}` },
  );
}

function allFailed(ids: readonly RecordId[]) {
  return (error: unknown) => new Map(ids.map((id) => [id, asError(error)]));
}

export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('The lookup failed.', { cause: error });
}
