/**
 * Limits how many pages of one walk are in flight. Halves the limit when the service is overloaded (429, 5xx), and
 * raises it by one for every `limit` pages that arrive without such an answer.
 */
export class Pace {
  readonly #max: number;
  #limit: number;
  #halvings = 0;
  #arrivals = 0;

  /** @param max the most pages in flight */
  constructor(max: number) {
    this.#max = max;
    this.#limit = max;
  }

  /** The number of pages that may be in flight now. */
  get limit(): number {
    return this.#limit;
  }

  /** Call it when a page is requested, and what it returns when the service answers. */
  begin(): { overloaded(): void; arrived(): void } {
    const begunAfter = this.#halvings;
    let isOverloaded = false;
    return {
      overloaded: () => {
        isOverloaded = true;
        // Requests that were in flight when the limit was halved do not halve it again.
        if (begunAfter !== this.#halvings) return;
        this.#limit = Math.max(1, Math.floor(this.#limit / 2));
        this.#halvings += 1;
        this.#arrivals = 0;
      },
      arrived: () => {
        if (isOverloaded || this.#limit >= this.#max) return;
        this.#arrivals += 1;
        if (this.#arrivals < this.#limit) return;
        this.#limit += 1;
        this.#arrivals = 0;
      },
    };
  }
}
