import type { AnswerError } from '../engine/answer.ts';
import type { Call } from '../engine/call.ts';
import { isLongInteger } from '../engine/json.ts';
import { codedError } from '../errors.ts';
import { withoutPath } from './requirements.ts';

/** An operation while graphql-js executes it. */
class Execution {
  readonly call: Call;
  readonly #unplaced = new Map<string, AnswerError>();
  #values = 0;

  constructor(call: Call) {
    this.call = call;
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

/** @returns the context for resolvers: a copy of that of plugins, which several executions may share */
export function beginExecution(call: Call): {
  readonly execution: Execution;
  readonly context: object;
} {
  const execution = new Execution(call);
  return { execution, context: { ...call.origin.context, [EXECUTION]: execution } };
}

/** Returns the call of the operation that is executed with this context; undefined if it is not one of a request. */
export function callWith(context: unknown): Call | undefined {
  return executionWith(context)?.call;
}

export function executionWith(context: unknown): Execution | undefined {
  if (typeof context !== 'object' || context === null) return undefined;
  return Reflect.get(context, EXECUTION) as Execution | undefined;
}
