import DataLoader from 'dataloader';
import type { Cause } from '../cause.ts';
import type { AnswerBudget, HeldBytes } from '../memory/answer-budget.ts';
import type { DrainBudget } from '../paging/drain.ts';
import { PageBudget, type BudgetOwner, type CallerBudgets } from '../paging/page-budget.ts';
import { PAGES_PER_OPERATION } from '../paging/page.ts';
import { Slots } from '../queue.ts';
import type { Execute, ReadRequest } from '../answers/answer-reader.ts';
import type { Sender } from '../upstream/request.ts';
import { keyOf } from '../upstream/share.ts';

/** The variables of a request to the gateway, as values and as the caller wrote them. */
export interface CallVariables {
  /** Coerced to their types. */
  readonly values: Readonly<Record<string, unknown>>;
  /** As JSON; undefined for a variable without a value. */
  text(name: string): string | undefined;
  /**
   * Not coerced: a number is a `Json` if `values` may have lost how it was written. Undefined for a variable without a
   * value.
   */
  uncoerced(name: string): unknown;
}

/** The caller that requests are sent for. A walk that several callers share is sent for the one who started it. */
export type RequestOrigin = Pick<Sender, 'caller' | 'cause'>;

/** Sends requests on behalf of an operation or a walk. */
export interface Requester extends RequestOrigin {
  /** @param signal of the page's reader. A request that others may wait for goes on when it is aborted. */
  request<T>(request: UpstreamRequest<T>, signal?: AbortSignal): Promise<T>;
}

/** One request of an operation to the service. */
export interface UpstreamRequest<T> extends ReadRequest<T> {
  /** Cost in pages. */
  readonly pages: number;
}

/** Where a call comes from. */
export interface CallOrigin {
  /** Undefined only before it is known. */
  readonly budgetOwner: BudgetOwner | undefined;
  /** Aborted when the caller leaves. Read it late: it is created on first use, which is not free. */
  readonly signal: AbortSignal;
  /** For telemetry; passed on unread. */
  readonly cause: Cause | undefined;
  /** Undefined if callers need no credential. */
  readonly caller?: { readonly scopes: ReadonlySet<string> } | undefined;
  /** What resolvers get as their context; undefined until there is one. */
  readonly context?: object | undefined;
}

/** Shared by all calls. */
export interface CallParts {
  readonly execute: Execute;
  readonly callers: CallerBudgets;
  /** Records that one operation may drain. */
  readonly drainMaxItems: number;
  readonly budget: AnswerBudget;
}

/** The state of one operation while it is answered. */
export class Call implements Requester {
  readonly variables: CallVariables;
  /** The pages that the operation may use. */
  readonly pages: PageBudget;
  /** Shared by all drains of the operation. */
  drainBudget: DrainBudget;
  /** Shared by all fields of the operation that return several records by their ids. */
  readonly references: { count: number };
  readonly cause: Cause | undefined;
  /** The call of the operation that a delegation is for; otherwise this one. */
  readonly #whole: Call;
  /** Bytes of its pieces, the uncounted ones too. */
  #bytes = 0;
  #held: HeldBytes | undefined;
  #isOver = false;
  readonly #origin: CallOrigin;
  readonly #parts: CallParts;
  #isSharing = true;
  /** What was sent, by its body and key. Made on first use: many operations send a single request. */
  #requests: Map<string, Promise<unknown>> | undefined;
  #slots: Slots | undefined;
  #loaders: Map<string, DataLoader<string, unknown>> | undefined;

  /** @param whole for a delegation */
  constructor(variables: CallVariables, origin: CallOrigin, parts: CallParts, whole?: Call) {
    this.#origin = origin;
    this.#parts = parts;
    this.variables = variables;
    this.cause = origin.cause;
    this.#whole = whole ?? this;
    this.pages = whole?.pages ?? new PageBudget(parts.callers, origin.budgetOwner!);
    const { drainMaxItems: max } = parts;
    this.drainBudget = whole?.drainBudget ?? { max, left: max };
    this.references = whole?.references ?? { count: 0 };
  }

  /**
   * Creates the call of a delegation: an operation that is answered as a part of this one. It uses the same budgets,
   * sends nothing that this one has sent, and holds its pieces until this one ends.
   */
  delegate(variables: CallVariables): Call {
    return new Call(variables, this.#origin, this.#parts, this.#whole);
  }

  /** Lets the drains of the operation have fewer records together. Call it before they begin. */
  limitDrains(max: number): void {
    const whole = this.#whole;
    if (max < whole.drainBudget.max) whole.drainBudget = { max, left: max };
  }

  get origin(): CallOrigin {
    return this.#origin;
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
    const whole = this.#whole;
    whole.#bytes += bytes;
    return whole.#bytes < UNCOUNTED ? undefined : whole.held.hold(piece, bytes);
  }

  /**
   * Counts values that are made of its answer, like `hold`, but without waiting.
   *
   * @throws OPERATION_TOO_COMPLEX, RATE_LIMITED
   */
  holdAtOnce(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes >= UNCOUNTED) this.held.holdAtOnce({}, bytes);
  }

  /** The parts of its answer that are in memory. */
  get held(): HeldBytes {
    if (this.#whole !== this) return this.#whole.held;
    if (this.#held) return this.#held;
    this.#held = this.#parts.budget.open();
    if (this.#isOver) this.#held.release();
    return this.#held;
  }

  /** Releases its bytes. Call it when its answer is sent, or its caller has left. */
  end(): void {
    this.#isOver = true;
    this.#held?.release();
  }

  /**
   * Loads values by their keys: each key once in the whole operation, and those that are needed at the same time together.
   *
   * @param name of the loader, equal for equal values
   */
  loadAll<T>(
    name: string,
    keys: readonly string[],
    load: (keys: readonly string[]) => Promise<readonly T[]>,
  ): Promise<readonly T[]> {
    const loaders = (this.#whole.#loaders ??= new Map());
    const loader = (loaders.get(name) as DataLoader<string, T> | undefined) ?? new DataLoader(load);
    loaders.set(name, loader);
    return Promise.all(keys.map((key) => loader.load(key)));
  }

  /** Requests pages that are only read to find a record: see `PageBudget.forOverhead`. */
  get forOverhead(): Requester {
    const { caller, cause, pages } = this;
    return {
      caller,
      cause,
      request: (request) => this.#request({ request, budget: pages.forOverhead }),
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
    const requests = (this.#whole.#requests ??= new Map());
    const key = keyOf(charged.request.body + charged.request.key);
    const known = requests.get(key) as Promise<T> | undefined;
    if (known) return known;
    const sent = this.#sendInTurn(charged);
    requests.set(key, sent);
    // A request that failed may be sent again.
    sent.catch(() => requests.delete(key));
    return sent;
  }

  #send<T>({ request, budget }: ChargedRequest<T>, slots?: Slots): Promise<T> {
    const { signal, caller, cause } = this;
    budget.spend(request.pages);
    return this.#parts.execute(request, {
      signal,
      caller,
      cause,
      slots,
      priority: 'interactive',
    });
  }

  async #sendInTurn<T>(charged: ChargedRequest<T>): Promise<T> {
    return this.#send(charged, (this.#whole.#slots ??= new Slots(() => PAGES_PER_OPERATION)));
  }
}

/** Bytes. */
const UNCOUNTED = 65_536;

interface ChargedRequest<T> {
  readonly request: UpstreamRequest<T>;
  readonly budget: PageBudget;
}
