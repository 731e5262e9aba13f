/**
 * What goes wrong with an answer of /oauth/token.
 * - `drop-before`: the connection is cut, with nothing processed.
 * - `drop-after`: the token is exchanged, and the connection cut before any byte of an answer.
 * - `cut-body`: the token is exchanged, and the connection cut in the middle of the body.
 * - an object: this answer instead, with nothing processed; JSON unless its headers say otherwise.
 * - a function: the token is exchanged, and the JSON of the new pair goes out as the function writes it; a refusal
 *   stays as it is.
 */
export type TokenFault =
  | 'drop-before'
  | 'drop-after'
  | 'cut-body'
  | { status: number; body?: string; headers?: Record<string, string> }
  | ((json: string) => {
      status: number;
      body: string | Uint8Array;
      headers?: Record<string, string>;
    });

/** Before or after the request is processed. */
export type HoldPoint = 'before' | 'after';

export interface TokenAnswers {
  /** One fault for each of the requests to come, before those of `every`. */
  next(...faults: TokenFault[]): void;
  /** A fault for each n-th request from now on, not counting those that `next` takes. */
  every(n: number, fault: TokenFault): void;
  /** Removes all faults, and the holds that no request has reached. */
  clear(): void;
  /** Stops one request to come, before or after it is processed, until it is released. */
  hold(when: HoldPoint): Held;
}

export interface Held {
  /** Resolves when the request has reached the point where it is held. */
  readonly arrived: Promise<void>;
  /** Resolves when the client leaves while its request is held. */
  readonly left: Promise<void>;
  release(): void;
}

/** The faults and holds for requests to come: each request takes the first of each. */
export class TokenFaults implements TokenAnswers {
  #next: TokenFault[] = [];
  #every: { n: number; fault: TokenFault; count: number }[] = [];
  #holds: Hold[] = [];

  next(...faults: TokenFault[]): void {
    this.#next.push(...faults);
  }

  every(n: number, fault: TokenFault): void {
    if (!Number.isInteger(n) || n < 1)
      throw new RangeError(`${n} is not a valid interval: it must be a whole number from 1.`);
    this.#every.push({ n, fault, count: 0 });
  }

  clear(): void {
    this.#next = [];
    this.#every = [];
    this.#holds = [];
  }

  hold(when: HoldPoint): Held {
    const hold = new Hold(when);
    this.#holds.push(hold);
    return hold;
  }

  take(): { fault: TokenFault | undefined; hold: Hold | undefined } {
    return { fault: this.#next.shift() ?? this.#due(), hold: this.#holds.shift() };
  }

  #due(): TokenFault | undefined {
    for (const rule of this.#every) rule.count += 1;
    // If two are due at once, the later one applies to the next request.
    const due = this.#every.find(({ n, count }) => count >= n);
    if (due) due.count -= due.n;
    return due?.fault;
  }
}

/** One request that stops until it is released or its client leaves. */
export class Hold {
  readonly when: HoldPoint;
  readonly #arrival = Promise.withResolvers<void>();
  readonly #leave = Promise.withResolvers<void>();
  readonly #release = Promise.withResolvers<void>();

  constructor(when: HoldPoint) {
    this.when = when;
  }

  /** Resolves when the request has reached this point. */
  get arrived(): Promise<void> {
    return this.#arrival.promise;
  }

  /** Resolves when the client leaves while its request is held. */
  get left(): Promise<void> {
    return this.#leave.promise;
  }

  readonly release = (): void => this.#release.resolve();

  /** Rejects if the client has left meanwhile. */
  async pass(gone: AbortSignal): Promise<void> {
    const leave = () => this.#leave.resolve();
    gone.addEventListener('abort', leave);
    if (gone.aborted) leave();
    this.#arrival.resolve();
    await Promise.race([this.#release.promise, this.#leave.promise]);
    // The signal is aborted once an answer is sent, too; then the client has not left.
    gone.removeEventListener('abort', leave);
    gone.throwIfAborted();
  }
}
