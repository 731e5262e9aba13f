import DataLoader from 'dataloader';
import type { PageMeter } from '../../paging/price/page-meter.ts';
import type { AskingContext } from '../asking/asking-context.ts';
import type { UpstreamValue } from '../asking/upstream-value.ts';

/** An id as the upstream takes it. */
export type RecordId = string | number;

/** One selection of the records of one type, and the way to find them by their ids. */
export interface RecordLookup {
  /** The same for all that ask the upstream for the same. */
  readonly name: string;
  /** @returns for each id what was found; nothing for those of which there is no record */
  find(ids: readonly RecordId[], context: LookupContext): Promise<ReadonlyMap<RecordId, Finding>>;
}

export interface FoundRecord {
  readonly found: UpstreamValue;
  /** What came with it and stands at no record. */
  readonly beside: readonly unknown[];
}

/** An error: nobody can tell whether there is such a record. */
export type Finding = FoundRecord | Error;

/** Whose requests a lookup sends, and until when. */
export interface LookupContext extends AskingContext {
  readonly signal: AbortSignal;
  readonly pages: PageMeter;
}

export interface WantedRecord {
  readonly lookup: RecordLookup;
  readonly id: RecordId;
}

export type RecordLoader = DataLoader<WantedRecord, FoundRecord | null, string>;

/** The records that one operation asks for by their ids: those of one selection together, and each once. */
export function createRecordLoader(context: LookupContext): RecordLoader {
  return new DataLoader(
    async (wanted) => {
      const found = new Map<string, ReadonlyMap<RecordId, Finding>>();
      await Promise.all(
        Array.from(
          Map.groupBy(wanted, ({ lookup }) => lookup.name),
          async ([name, records]) => {
            const ids = records.map(({ id }) => id);
            found.set(name, await records[0]!.lookup.find(ids, context).catch(allFailed(ids)));
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
