import type { Context } from '@opentelemetry/api';
import type { Cause } from '../cause.ts';

/** What telemetry keeps of a caller's request. */
export interface WatchedCause extends Cause {
  /** Holds the span that is the parent of what is done. */
  readonly context: Context;
  readonly cost: Cost;
}

export interface Cost {
  upstreamRequests: number;
  /** Pages of lists. */
  pages: number;
}

/** Every cause was made here. Undefined for what the gateway does of its own accord. */
export function watched(cause: Cause | undefined): WatchedCause | undefined {
  return cause as WatchedCause | undefined;
}
