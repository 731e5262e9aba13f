import DataLoader from 'dataloader';
import { LRUCache } from 'lru-cache';
import type { Config } from '../config.ts';
import type { DrainBudget } from '../paging/drain.ts';
import { PageBudget, type Budget, type CallerBudgets } from '../paging/page-budget.ts';
import type { WalkReader } from '../paging/shared-walk.ts';
import { limitedTo, type Limited } from '../queue.ts';
import type { Cause, OutgoingRequest, Priority, UpstreamAnswer } from '../upstream/request.ts';
import type { SendToService } from '../upstream/upstream.ts';
import type { AnswerMemory, HeldMemory } from '../memory/answer-memory.ts';

/** The values of an operation's variables. */
export interface CallVariables {
  /** Coerced to their types. */
  readonly values: Readonly<Record<string, unknown>>;
  /** As the caller sent them. */
  readonly sent: Readonly<Record<string, unknown>>;
}

/** Where a call comes from. */
export interface CallOrigin {
  /** Aborted when the caller leaves. Read it late: it is created on first use, which is not free. */
  readonly signal: AbortSignal;
  /** For telemetry; passed on unread. */
  readonly cause: Cause | undefined;
  /** Undefined if callers need no credential: then they have every scope. */
  readonly caller?: Caller | undefined;
  /** Distinguishes callers without a credential. */
  readonly address: string;
  /** What resolvers get as their context; undefined until there is one. */
  readonly context?: object | undefined;
}

/** The identity of an authenticated caller: whose pages are counted, and whose requests take turns. */
export interface Caller {
  /**
   * `key:` and the name of an API key, or `sub:` and the subject of a token: the prefixes keep the two apart. The
   * subject may be a person, so it must not be logged.
   */
  readonly name: string;
  readonly scopes: ReadonlySet<string>;
}

/** Shared by all calls. */
export interface CallParts {
  readonly send: SendToService;
  readonly callers: CallerBudgets;
  readonly config: Pick<Config, 'drainMaxItems'>;
  readonly memory: AnswerMemory;
}

type OnDrained = (records: Buffer) => void;

/** @param keys each once @returns a value or an error for each key, in their order */
type LoadAll<T> = (keys: readonly string[]) => Promise<readonly (T | Error)[]>;

type Loaders = Map<string, DataLoader<string, unknown>>;

/** The most keys that are loaded together: the service counts each as a request of its own. */
const BATCH = 50;
/** The requests that one operation has in flight at most, so that its pages do not take all turns of its caller. */
const REQUESTS_AT_A_TIME = 8;

/**
 * On whose behalf the service is asked: the state of one operation while it is answered, or of a walk that several
 * operations share.
 */
export class Call {
  readonly variables: CallVariables;
  readonly origin: CallOrigin;
  /** The pages that may be used; a walk spends the budgets of all its readers. */
  readonly budget: Budget;
  /** Called with the records of each page that a drain returns, with commas between them. It may throw to end it. */
  readonly onDrained: OnDrained | undefined;
  readonly #whole: Whole;

  constructor(whole: Whole, { variables, budget, onDrained }: Part) {
    this.#whole = whole;
    this.variables = variables;
    this.origin = whole.origin;
    this.budget = budget;
    this.onDrained = onDrained;
  }

  get caller(): string {
    return this.budget.caller;
  }

  get signal(): AbortSignal {
    return this.origin.signal;
  }

  /** Its walks wait together for their first slot. */
  get operation(): object {
    return this.#whole;
  }

  /** Shared by all drains of the operation. */
  get drainBudget(): DrainBudget {
    return this.#whole.drainBudget;
  }

  /** Shared by all fields of the operation that return several records by their ids. */
  get references(): { count: number } {
    return this.#whole.references;
  }

  /** The same, for pages that are only read to count records, or to find some. */
  forOverhead(): Call {
    const { variables, onDrained } = this;
    return new Call(this.#whole, { variables, budget: this.budget.forOverhead, onDrained });
  }

  /**
   * Creates the call of a delegation: an operation that is answered as a part of this one. It uses the same budgets and
   * loaders, and sends nothing that this one has sent.
   */
  delegate(variables: CallVariables, onDrained?: OnDrained): Call {
    return new Call(this.#whole, { variables, budget: this.budget, onDrained });
  }

  /** Creates the call of a walk that this operation begins. @param readers all its readers together */
  forWalk({ signal, budget }: WalkReader): Call {
    const { caller, address, cause } = this.origin;
    const origin = { caller, address, cause, signal };
    const whole = wholeOf(this.#whole.parts, origin, { isWalk: true });
    return new Call(whole, { variables: this.variables, budget });
  }

  /** @param pages its cost */
  async ask(request: OutgoingRequest, pages: number): Promise<UpstreamAnswer> {
    this.budget.spend(pages);
    const { signal, cause } = this.origin;
    const { caller } = this;
    const { limited, parts, priority } = this.#whole;
    return limited(() => parts.send(request, { signal, caller, cause, priority }));
  }

  /**
   * Loads values by their keys, those that are needed at the same time together.
   *
   * @param name equal for equal values
   */
  loader<T>(
    name: string,
    load: LoadAll<T>,
    maxBatchSize = BATCH,
  ): Pick<DataLoader<string, T>, 'load'> {
    const whole = this.#whole;
    const loaders: Loaders = (whole.loaders ??= new Map());
    const known = loaders.get(name);
    if (known) return known as DataLoader<string, T>;
    // A walk may be long: it does not remember all that it has loaded.
    const cacheMap = whole.isWalk ? new LRUCache<string, Promise<T>>({ max: BATCH }) : new Map();
    const made = new DataLoader<string, T>(load, { maxBatchSize, cacheMap });
    loaders.set(name, made);
    return made;
  }

  /** Counts a text of the answer. @throws as `HeldMemory.hold` */
  hold(text: object, bytes: number): void {
    const whole = this.#whole;
    // Each reader of a walk counts what it keeps; DRAIN_MAX_ITEMS bounds the nested lists of its pages.
    if (whole.isWalk || whole.isOver) return;
    whole.held ??= whole.parts.memory.open();
    whole.held.hold(text, bytes);
  }

  /** Releases the memory of the whole operation. Call it when its answer is sent, or its caller has left. */
  end(): void {
    this.#whole.isOver = true;
    this.#whole.held?.release();
  }
}

interface Part {
  readonly variables: CallVariables;
  readonly budget: Budget;
  readonly onDrained?: OnDrained | undefined;
}

/** What an operation shares with its delegations. */
interface Whole {
  readonly parts: CallParts;
  readonly origin: CallOrigin;
  readonly isWalk: boolean;
  readonly priority: Priority;
  readonly limited: Limited;
  readonly drainBudget: DrainBudget;
  readonly references: { count: number };
  loaders: Loaders | undefined;
  held: HeldMemory | undefined;
  isOver: boolean;
}

function wholeOf(parts: CallParts, origin: CallOrigin, { isWalk = false } = {}): Whole {
  const { drainMaxItems: max } = parts.config;
  return {
    parts,
    origin,
    isWalk,
    priority: isWalk ? 'drain' : 'interactive',
    // A walk limits its pages in flight by itself.
    limited: limitedTo(isWalk ? Infinity : REQUESTS_AT_A_TIME),
    drainBudget: { max, left: max },
    references: { count: 0 },
    loaders: undefined,
    held: undefined,
    isOver: false,
  };
}

export function createCall(parts: CallParts, variables: CallVariables, origin: CallOrigin): Call {
  const { caller, address } = origin;
  const mayDrain = caller?.scopes.has('drain') ?? true;
  const budget = new PageBudget(parts.callers, caller?.name ?? address, mayDrain);
  return new Call(wholeOf(parts, origin), { variables, budget });
}
