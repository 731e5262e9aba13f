import type { Payer } from '../paging/price/page-meter.ts';
import type { ServedSchema } from './served-schema.ts';
import type { ServingContext } from './serving-context.ts';

/** Of the request that an operation came with. */
export interface ContextParts {
  readonly payer: Payer;
  /** Aborted when the caller leaves. */
  readonly signal: AbortSignal;
  /** For whoever watches: nothing here looks into it. */
  readonly cause: unknown;
  readonly drainMaxItems: number;
}

/** What one operation has of its own. */
export function createContext(
  served: ServedSchema,
  { payer, signal, cause, drainMaxItems: max }: ContextParts,
): ServingContext {
  const own = { signal, cause, pages: served.createMeter(payer) };
  return {
    ...own,
    ...served.createLoaders(own),
    drainBudget: { max, left: max },
    surplusErrors: [],
  };
}
