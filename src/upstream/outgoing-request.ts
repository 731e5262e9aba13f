import type { Cause } from '../cause.ts';
import type { Json } from '../json.ts';
import type { Priority } from './turns.ts';

/** One request as it is sent, how its answer is read, and who wants it. */
export interface OutgoingRequest<T = unknown> extends RequestedAnswer<T>, RequestSender {
  /** Only queries are shared, or sent twice. */
  readonly kind: 'query' | 'mutation';
  /** The field of the root that it asks for. */
  readonly field: string;
  /** JSON. */
  readonly body: string;
  /** Beside the body, what tells requests that are read in different ways. */
  readonly key?: string;
}

export interface RequestedAnswer<T> {
  /** Undefined: the answer has to be read in general. */
  readonly scan: (bytes: Buffer) => T | undefined;
  /** @param answer an object with `data`, or a list of `errors`, or both */
  readonly read: (answer: Json) => T;
}

/** Nothing of it can be left out by mistake: who has no caller, for one, waits in one line with all others who have none. */
export interface RequestSender {
  /** The caller left: what only that caller waited for is aborted. */
  readonly signal: AbortSignal;
  readonly priority: Priority;
  /** Whose turn it takes; of several who share it, that of the one who began it. */
  readonly caller: string;
  /** Called for each 429 and 5xx, also when the request is then sent again: a drain had better ask for less at a time. */
  readonly onPressure?: (() => void) | undefined;
  /** For telemetry; of several who share it, of the one who began it. Undefined: the gateway's own affair. */
  readonly cause: Cause | undefined;
}
