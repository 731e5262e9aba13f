import DataLoader from 'dataloader';
import PQueue from 'p-queue';
import type { AnswerBudget, HeldBytes } from '../answers/budget.ts';
import type { Cause } from '../cause.ts';
import type { Json } from '../json.ts';
import { mapKey } from '../map-key.ts';
import type { Pausable } from '../pausable.ts';
import type { RequestMemory } from '../request-memory.ts';
import type { DrainBudget } from '../paging/drain/drain.ts';
import { PAGES_PER_OPERATION } from '../paging/page.ts';
import {
  createPageBudget,
  type BudgetOwner,
  type CallerBudgets,
  type PageBudget,
} from '../paging/page-budget.ts';
import { RecordLoader } from './record-loader.ts';

/** The variables of a request to the gateway, as values and as the caller wrote them. */
export interface CallVariables {
  /** Coerced to their types. */
  readonly values: Readonly<Record<string, unknown>>;
  /** As JSON; undefined for a variable that was not given. */
  text(name: string): string | undefined;
  /**
   * Not coerced: a number is a `Json` if `values` may have lost how it was written. Undefined for a variable that was not
   * given.
   */
  given(name: string): unknown;
}

/** The caller that requests are sent for. A walk that several callers share is sent for the one who started it. */
export interface RequestOrigin {
  /** Callers take turns. */
  readonly caller: string;
  /** For telemetry. */
  readonly cause: Cause | undefined;
}

/** Sends requests on behalf of an operation or a walk. */
export interface Requester extends RequestOrigin {
  request<T>(request: UpstreamRequest<T>): Promise<T>;
}

/** One request to the service, and how its answer is read. */
export interface UpstreamRequest<T> {
  readonly kind: 'query' | 'mutation';
  /** The root field that it selects; the first one of several. */
  readonly field: string;
  /** JSON. */
  readonly body: string;
  /** Names how the answer is read, where the body does not say it: answers are shared as they were read. */
  readonly key: string;
  /** Cost in pages. */
  readonly pages: number;
  /** Returns undefined for an answer that only `read` can take. Default: `read` takes all. */
  readonly scan?: ((bytes: Buffer) => Pausable<T | undefined>) | undefined;
  readonly read: (answer: Json, status: number) => Pausable<T>;
  /** For a trial: see `OutgoingRequest`. */
  readonly trialMs?: number | undefined;
}

/** Results are shared by all callers who send the same request: they must not be changed. */
export type SendRequest = <T>(request: UpstreamRequest<T>, options: SendOptions) => Promise<T>;

export interface SendOptions extends RequestOrigin {
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  readonly priority: 'interactive' | 'drain';
  /** Called for each answer that says that the service is overloaded. */
  readonly onPressure?: () => void;
}

/** Who called. */
export interface CallOrigin {
  /** Undefined only before it is known. */
  readonly budgetOwner: BudgetOwner | undefined;
  /** Aborted when the caller leaves. Read on first use, because making one costs something. */
  readonly signal: AbortSignal;
  /** For telemetry; passed on unread. */
  readonly cause: Cause | undefined;
}

/** What all calls have in common. */
export interface CallParts {
  readonly send: SendRequest;
  readonly callers: CallerBudgets;
  /** Records that one operation may drain. */
  readonly drainMaxItems: number;
  readonly budget: AnswerBudget;
  readonly memory: RequestMemory;
}

/** What one operation has of its own while it is answered. */
export class Call implements Requester {
  readonly variables: CallVariables;
  /** The pages that the operation may use. */
  readonly pages: PageBudget;
  /** Shared by all drains of the operation. */
  readonly drainBudget: DrainBudget;
  /** Shared by all fields of the operation that return several records by their ids. */
  readonly references = { count: 0 };
  readonly cause: Cause | undefined;
  /** Bytes of its pieces, the uncounted ones too. */
  #bytes = 0;
  #held: HeldBytes | undefined;
  #isOver = false;
  readonly #origin: CallOrigin;
  readonly #parts: CallParts;
  #isSharing = true;
  #requests: DataLoader<ChargedRequest<unknown>, unknown, string> | undefined;
  #records: RecordLoader | undefined;

  constructor(variables: CallVariables, origin: CallOrigin, parts: CallParts) {
    this.#origin = origin;
    this.#parts = parts;
    this.variables = variables;
    this.pages = createPageBudget(parts.callers, origin.budgetOwner!);
    this.cause = origin.cause;
    this.drainBudget = { max: parts.drainMaxItems, left: parts.drainMaxItems };
  }

  /** Aborted when the caller leaves. */
  get signal(): AbortSignal {
    return this.#origin.signal;
  }

  get caller(): string {
    return this.pages.owner;
  }

  /**
   * Counts a piece of its answer against the memory that answers may hold, but not the first pieces: the buffers of a
   * socket hold as much anyway. Returns a promise if the operation has to wait.
   *
   * @throws OPERATION_TOO_COMPLEX, RATE_LIMITED
   */
  hold(piece: object, bytes: number): Promise<void> | undefined {
    this.#bytes += bytes;
    return this.#bytes < UNCOUNTED ? undefined : this.held.hold(piece, bytes);
  }

  /** The parts of its answer that are in memory. */
  get held(): HeldBytes {
    if (this.#held) return this.#held;
    this.#held = this.#parts.budget.open();
    if (this.#isOver) this.#held.release();
    return this.#held;
  }

  /** To be called when its answer is sent, or its caller has left: it holds nothing from then on. */
  end(): void {
    this.#isOver = true;
    this.#held?.release();
  }

  /** Loads records by their ids. */
  get records(): RecordLoader {
    return (this.#records ??= new RecordLoader());
  }

  /** Requests pages that are only read to find a record: see `PageBudget.forSearch`. */
  get forSearch(): Requester {
    const { caller, cause, pages } = this;
    return {
      caller,
      cause,
      request: (request) => this.#request({ request, budget: pages.forSearch }),
    };
  }

  /** Sends a request and counts its cost, even if the operation has sent an equal one. */
  send<T>(request: UpstreamRequest<T>): Promise<T> {
    return this.#send({ request, budget: this.pages });
  }

  /**
   * Sends equal requests of an operation once: those of two aliases, or of two lists that read the same page. They are
   * aborted with the operation, not with the walk that happened to send them first.
   */
  request<T>(request: UpstreamRequest<T>): Promise<T> {
    return this.#request({ request, budget: this.pages });
  }

  /**
   * Makes `request` do the same as `send`. For an operation that reads a single list and nothing else: it requests
   * every page once, one after the other, so looking for equal requests would find none.
   */
  stopSharing(): void {
    this.#isSharing = false;
  }

  #request<T>(charged: ChargedRequest<T>): Promise<T> {
    if (!this.#isSharing) return this.#send(charged);
    return (this.#requests ??= this.#createLoader()).load(charged) as Promise<T>;
  }

  #send<T>({ request, budget }: ChargedRequest<T>): Promise<T> {
    budget.spend(request.pages);
    return this.#parts.send(request, this.#sendOptions());
  }

  #sendOptions(): SendOptions {
    const { signal, caller, cause } = this;
    return { signal, caller, cause, priority: 'interactive' };
  }

  #createLoader() {
    const queue = new PQueue({ concurrency: PAGES_PER_OPERATION });
    const { memory } = this.#parts;
    return new DataLoader<ChargedRequest<unknown>, unknown, string>(
      (requests) =>
        Promise.all(
          requests.map(async ({ request, budget }) => {
            const { signal } = this;
            budget.spend(request.pages);
            const options = this.#sendOptions();
            const send = () => queue.add(() => this.#parts.send(request, options), { signal });
            if (queue.pending < PAGES_PER_OPERATION) return send();
            // Each alias may have a request of its own with the same large variables.
            const bytes = Buffer.byteLength(request.body);
            try {
              if (!memory.add(bytes, bytes)) throw memory.refusal();
              return await send();
            } finally {
              memory.remove(bytes);
            }
          }),
        ),
      {
        // A batch would hold back the first answer until the last one has arrived.
        batch: false,
        cacheKeyFn: ({ request: { body, key } }) => mapKey(body + key),
      },
    );
  }
}

/** Bytes. */
const UNCOUNTED = 65_536;

interface ChargedRequest<T> {
  readonly request: UpstreamRequest<T>;
  readonly budget: PageBudget;
}
