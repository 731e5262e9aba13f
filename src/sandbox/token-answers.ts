import { Hold } from './hold.ts';
import type { HoldPoint } from './hold.ts';

/**
 * What goes wrong with an answer of /oauth/token.
 * - `drop-before`: the connection is cut, with nothing processed.
 * - `drop-after`: the token is exchanged, and the connection cut before any byte of an answer.
 * - `cut-body`: the token is exchanged, and the connection cut in the middle of the body.
 * - an object: this answer instead, with nothing processed; JSON unless its headers say otherwise.
 * - a function: the token is exchanged, and the JSON of the answer goes out as the function writes it.
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

export interface TokenAnswers {
  /** One fault for each of the requests to come, before those of `every`. */
  next(...faults: TokenFault[]): void;
  /** A fault for each n-th request from now on, not counting those that `next` takes. */
  every(n: number, fault: TokenFault): void;
  /** Forgets all faults, and the holds no request has come to. */
  clear(): void;
  /** Stops one request to come, before or after it is processed, until it is released. */
  hold(when: HoldPoint): Held;
}

export interface Held {
  /** Resolves when the request has come to the point where it is held. */
  readonly arrived: Promise<void>;
  /** Resolves when the client leaves while its request is held. */
  readonly left: Promise<void>;
  release(): void;
}

/** The faults and holds that wait for requests: whoever comes first takes the first of each. */
export class TokenFaults implements TokenAnswers {
  #next: TokenFault[] = [];
  #every: { n: number; fault: TokenFault; count: number }[] = [];
  #holds: Hold[] = [];

  next(...faults: TokenFault[]): void {
    this.#next.push(...faults);
  }

  every(n: number, fault: TokenFault): void {
    if (!Number.isInteger(n) || n < 1) throw new RangeError(`Every ${n}th is no rhythm.`);
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
    // Of two that are due at once, the later one gets the request after this one.
    const due = this.#every.find(({ n, count }) => count >= n);
    if (due) due.count -= due.n;
    return due?.fault;
  }
}
