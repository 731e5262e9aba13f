import type { AnswerError } from '../engine/answer.ts';
import type { Call } from '../engine/call.ts';
import { isLongInteger } from '../engine/json.ts';
import { codedError } from '../errors.ts';
import { withoutPath } from './requirements.ts';

/** An operation while graphql-js executes it. */
export class Execution {
  readonly call: Call;
  /** For resolvers: a copy of that of plugins, which several executions may share. */
  readonly context: object;
  readonly #unplaced = new Map<string, AnswerError>();
  #values = 0;

  constructor(call: Call) {
    this.call = call;
    this.context = { ...call.origin.context, [EXECUTION]: this };
  }

  /** Counts values that graphql-js completes, without a pause. @throws OPERATION_TOO_COMPLEX */
  count(values: number): void {
    this.#values += values;
    this.checkRoom(0);
  }

  /** Checks values that are counted later, so that no more of a list is read than fits. @throws OPERATION_TOO_COMPLEX */
  checkRoom(values: number): void {
    if (this.#values + values > MAX_VALUES) throw tooManyValues();
  }

  /**
   * Keeps an error that belongs to no value of the answer, once: each root field is a request of its own, and services
   * say in each of them what they say of all.
   */
  report(error: AnswerError): void {
    if ('service' in error) {
      const { service } = error;
      this.#unplaced.set(JSON.stringify(service), { service, path: undefined });
    } else {
      const thrown = withoutPath(error.thrown as Error);
      const text = `${String(thrown)} ${JSON.stringify(thrown)}`;
      this.#unplaced.set(text, { thrown, path: undefined });
    }
  }

  get unplaced(): readonly AnswerError[] {
    return [...this.#unplaced.values()];
  }
}

/** Per operation: members of objects and elements of lists, those that resolvers and merges require included. */
const MAX_VALUES = 50_000;

/** Counts members of objects and elements of lists. */
export function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null || isLongInteger(value)) return 0;
  let count = 0;
  for (const member of Object.values(value)) count += 1 + valuesIn(member);
  return count;
}

function tooManyValues() {
  return codedError(
    'OPERATION_TOO_COMPLEX',
    `The operation selects a field that was added to this gateway, on too many records: together they may have ${MAX_VALUES} values. ` +
      'Request fewer records at a time, with `first` of a connection, or leave out the added fields.',
  );
}

/** Enumerable: a resolver may delegate with a copy of its context. */
const EXECUTION = Symbol('execution');

/** Returns the operation that is executed with the context of a resolver; undefined if it is not one of a request. */
export function executionWith(context: unknown): Execution | undefined {
  return (context as { readonly [EXECUTION]?: Execution } | null | undefined)?.[EXECUTION];
}
