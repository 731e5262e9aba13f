import DataLoader from 'dataloader';
import PQueue from 'p-queue';
import type { HeldBytes } from '../answers/budget.ts';
import type { Cause } from '../cause.ts';
import type { Json } from '../json.ts';
import type { DrainBudget } from '../paging/drain/drain.ts';
import { PAGES_PER_OPERATION } from '../paging/page.ts';
import type { PageBudget } from '../paging/page-budget.ts';
import { createRecordLoader, type RecordLoader } from './record-loader.ts';

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

/** For whom something is asked; of several who share it, the one who began it. */
export interface Asker {
  /** Of several callers it is the turn of one after the other. */
  readonly caller: string;
  /** For telemetry. */
  readonly cause: Cause | undefined;
}

/** For whom a request is sent, and until when. */
export interface RequestSender extends Asker {
  /** Aborted when nobody waits for it any more. */
  readonly signal: AbortSignal;
  readonly priority: 'interactive' | 'drain';
  /** Called for each answer that says that the service has too much to do. */
  readonly onPressure?: () => void;
}

/** What is read is shared with others who send the same: nobody may change it. */
export type SendRequest = <T>(request: UpstreamRequest<T>, sender: RequestSender) => Promise<T>;

/** Sends requests in somebody's name. */
export interface Asking extends Asker {
  ask<T>(request: UpstreamRequest<T>): Promise<T>;
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
  readonly pages: PageBudget;
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
  readonly pages: PageBudget;
  readonly drainMaxItems: number;
  readonly held: HeldBytes;
  readonly cause: Cause | undefined;
}

export class OperationCall implements Call {
  readonly variables: CallVariables;
  readonly pages: PageBudget;
  readonly drainBudget: DrainBudget;
  readonly representations = { count: 0 };
  readonly cause: Cause | undefined;
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

  get caller(): string {
    return this.pages.owner;
  }

  get records(): RecordLoader {
    return (this.#records ??= createRecordLoader());
  }

  send<T>(request: UpstreamRequest<T>): Promise<T> {
    this.pages.spend(request.pages);
    return this.#parts.send(request, this.#sender());
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

  #sender(): RequestSender {
    const { signal, caller, cause } = this;
    return { signal, caller, cause, priority: 'interactive' };
  }

  #createLoader() {
    const queue = new PQueue({ concurrency: PAGES_PER_OPERATION });
    return new DataLoader<UpstreamRequest<unknown>, unknown, string>(
      (requests) =>
        Promise.all(
          requests.map(async (request) => {
            const { signal } = this;
            this.pages.spend(request.pages);
            const sender = this.#sender();
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
