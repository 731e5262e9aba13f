import DataLoader from 'dataloader';
import PQueue from 'p-queue';
import type { HeldBytes } from '../answers/budget.ts';
import type { UpstreamError } from '../answers/errors.ts';
import type { Reading } from '../answers/read.ts';
import type { Json } from '../json.ts';
import type { DrainBudget } from '../paging/drain.ts';
import type { PageMeter } from '../paging/price/page-meter.ts';
import type { ListRecord } from './output.ts';

/** One request of the service, and how its answer is read. */
export interface UpstreamRequest<T> {
  readonly kind: 'query' | 'mutation';
  /** The field of the root that it asks for, the first of several. */
  readonly field: string;
  /** JSON. */
  readonly body: string;
  /** Beside the body, what tells requests that are read in different ways; mostly empty. */
  readonly key: string;
  /** What it costs in pages. */
  readonly pages: number;
  /** Undefined: the answer has to be read in general. */
  readonly scan: (bytes: Buffer) => T | undefined;
  readonly read: (answer: Json) => T;
}

/** For whom a request is sent, and until when. */
export interface RequestSender {
  /** Aborted when nobody waits for it any more. */
  readonly signal?: AbortSignal;
  /** Interactive unless stated. */
  readonly priority?: 'interactive' | 'drain';
  /** Of several callers it is the turn of one after the other. */
  readonly caller?: string;
  /** Called for each answer that says that the service has too much to do. */
  readonly onPressure?: () => void;
  /** For telemetry. */
  readonly cause?: unknown;
}

/** What is read is shared with others who send the same: nobody may change it. */
export type SendRequest = <T>(request: UpstreamRequest<T>, sender: RequestSender) => Promise<T>;

/** Sends requests in somebody's name. */
export interface Asking {
  ask<T>(request: UpstreamRequest<T>): Promise<T>;
  readonly cause: unknown;
}

/** The variables of one request, as values, and as the caller wrote them. */
export interface CallVariables {
  /** Coerced to their types. */
  readonly values: Readonly<Record<string, unknown>>;
  /** As JSON; undefined for one that was not given. */
  readonly text: (name: string) => string | undefined;
}

/** What one operation has of its own while it is answered. */
export interface Call extends Asking {
  readonly variables: CallVariables;
  /** Aborted when the caller leaves. */
  readonly signal: AbortSignal;
  /** What it costs. */
  readonly pages: PageMeter;
  /** Shared by all drains of the operation. */
  readonly drainBudget: DrainBudget;
  /** Shared by all `_entities` of the operation. */
  readonly representations: { count: number };
  /** The records that it asks for by their ids. */
  readonly records: RecordLoader;
  /** What of its answer is in memory. */
  readonly held: HeldBytes;
  /** Pays for a request and sends it, whatever else the operation asks for. */
  send<T>(request: UpstreamRequest<T>): Promise<T>;
  /** For an operation that reads one list and nothing else: it asks for no page twice, and for one after the other. */
  alone(): this;
}

export interface CallParts {
  readonly send: SendRequest;
  readonly variables: CallVariables;
  /** Made when it is first read: most operations need none. */
  readonly signal: () => AbortSignal;
  readonly pages: PageMeter;
  readonly drainMaxItems: number;
  readonly held: HeldBytes;
  readonly cause: unknown;
}

/** Of one operation in flight: one that asks for thousands of pages below its parents is not alone. */
const AT_A_TIME = 8;

export class OperationCall implements Call {
  readonly variables: CallVariables;
  readonly pages: PageMeter;
  readonly drainBudget: DrainBudget;
  readonly representations = { count: 0 };
  readonly cause: unknown;
  readonly held: HeldBytes;
  readonly #parts: CallParts;
  #isAlone = false;
  #requests: DataLoader<UpstreamRequest<unknown>, unknown, string> | undefined;
  #records: RecordLoader | undefined;

  constructor(parts: CallParts) {
    this.#parts = parts;
    this.variables = parts.variables;
    this.pages = parts.pages;
    this.cause = parts.cause;
    this.held = parts.held;
    this.drainBudget = { max: parts.drainMaxItems, left: parts.drainMaxItems };
  }

  get signal(): AbortSignal {
    return this.#parts.signal();
  }

  get records(): RecordLoader {
    return (this.#records ??= createRecordLoader());
  }

  send<T>(request: UpstreamRequest<T>): Promise<T> {
    this.pages.pay(request.pages);
    const { signal, cause } = this;
    return this.#parts.send(request, { signal, cause, caller: this.pages.account.name });
  }

  /**
   * What is asked twice in an operation, by aliases or by two lists over one page, is sent once. Requests end with
   * the operation, and not with the one walk that happened to ask first.
   */
  ask<T>(request: UpstreamRequest<T>): Promise<T> {
    if (this.#isAlone) return this.send(request);
    return (this.#requests ??= this.#createLoader()).load(request) as Promise<T>;
  }

  alone(): this {
    this.#isAlone = true;
    return this;
  }

  #createLoader() {
    const queue = new PQueue({ concurrency: AT_A_TIME });
    return new DataLoader<UpstreamRequest<unknown>, unknown, string>(
      (requests) =>
        Promise.all(
          requests.map(async (request) => {
            const { signal } = this;
            this.pages.pay(request.pages);
            const { cause } = this;
            const sender = { signal, cause, caller: this.pages.account.name };
            return queue.add(() => this.#parts.send(request, sender), { signal });
          }),
        ),
      {
        // One by one: a batch would hold back the first answer until the last has come.
        batch: false,
        cacheKeyFn: ({ body, key }) => body + key,
      },
    );
  }
}

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
