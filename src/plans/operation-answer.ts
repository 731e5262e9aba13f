import type { CollectedField, DeferUse } from '../answers/collect-fields.ts';
import type { DeferredReading } from '../answers/read.ts';
import type { WholeAnswer } from '../answers/write-answer.ts';
import type { FieldValue } from './all-field.ts';
import type { Call } from './call.ts';
import type { ListField } from './list-field.ts';

export interface OperationAnswer extends WholeAnswer {
  readonly deferred: readonly DeferredReading[];
}

/** An operation as its conditions have it: made once for all calls in which they are the same. */
export interface Variant {
  /** Characters of the requests that were written for it when it was made. */
  readonly size: number;
  readonly fields: readonly RootField[];
  /**
   * Answers the fields that come together: those that are not put off, or those that one `@defer` puts off.
   *
   * @param given values that are there already
   */
  answer(call: Call, use?: DeferUse, given?: GivenValues): Promise<OperationAnswer>;
}

export type GivenValues = ReadonlyMap<RootField, Promise<FieldValue>>;

export type RootField = {
  readonly key: string;
  readonly collected: CollectedField;
  readonly isNullable: boolean;
} & (
  | { readonly kind: 'forwarded' }
  | { readonly kind: 'list'; readonly list: ListField }
  | { readonly kind: 'read'; readonly read: (call: Call) => Promise<FieldValue> | FieldValue }
);
