import type { Context } from '@opentelemetry/api';

/** A caller's request, as it is handed on by those who work for it, and who never look into it. */
export interface Cause {
  readonly requestId: string;
  /** Holds the span that is the parent of what is done. */
  readonly context: Context;
  readonly cost: Cost;
}

export interface Cost {
  upstreamRequests: number;
  /** Pages of lists. */
  pages: number;
}

/** Undefined for what the gateway does of its own accord. */
export function causeIn(cause: unknown): Cause | undefined {
  return cause as Cause | undefined;
}
