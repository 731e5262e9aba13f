/** How many pages of one drain may be in flight: fewer when the upstream is pressed, more again when it is not. */
export interface Pace {
  readonly limit: number;
  /** A page is asked for. */
  begin(): PacedRequest;
}

export interface PacedRequest {
  /** The upstream answered 429 or 5xx. */
  pressed(): void;
  /** The page has come. */
  arrived(): void;
}

/**
 * Halves on pressure, and grows by one for every `limit` pages that came without it. Of all the requests
 * that were under way when it was halved, none halves it again: they say nothing new.
 *
 * @param max pages in flight per drain, as configured
 */
export function createPace(max: number): Pace {
  let limit = max;
  let halvings = 0;
  let arrivals = 0;
  return {
    get limit() {
      return limit;
    },
    begin: () => {
      const begunAfter = halvings;
      let isPressed = false;
      return {
        pressed: () => {
          isPressed = true;
          if (begunAfter !== halvings) return;
          limit = Math.max(1, Math.floor(limit / 2));
          halvings += 1;
          arrivals = 0;
        },
        arrived: () => {
          if (isPressed || limit >= max) return;
          arrivals += 1;
          if (arrivals < limit) return;
          limit += 1;
          arrivals = 0;
        },
      };
    },
  };
}
