import { randomUUID } from 'node:crypto';
import type { ExecutionRequest } from '@graphql-tools/utils';
import type { ExecutionResult } from 'graphql';
import { checkedFor, type SchemaOperations } from '../additions/delegate.ts';
import { executionWith } from '../additions/execution.ts';
import { resultOf } from '../engine/answer.ts';
import type { Engine } from '../engine/engine.ts';
import { errorsThrown } from '../errors.ts';
import type { ErrorPolicy } from './error-policy.ts';

/**
 * Makes the executor of the program around the gateway. With the context that resolvers get, an operation is a part of
 * the caller's. Others need no scope, and together they have the budget of one caller. What fails is a result with
 * errors, and `@stream` is answered whole.
 */
export function inProcess(
  parts: SchemaOperations & {
    readonly engine: Pick<Engine, 'createCall'>;
    readonly errors: Pick<ErrorPolicy, 'mask'>;
  },
): (request: ExecutionRequest) => Promise<ExecutionResult> {
  const { engine } = parts;
  return async (request) => {
    const failing = { requestId: randomUUID() };
    const mask = (error: unknown) => parts.errors.mask(error, failing);
    const whole = executionWith(request.context)?.call;
    const signal = request.signal ?? new AbortController().signal;
    const context = { ...(request.context as object) };
    const origin = { address: ADDRESS, cause: undefined, signal, context };
    try {
      const { plan, variables } = checkedFor(parts, request, whole?.origin.caller);
      const call = whole ? whole.delegate(variables) : engine.createCall(variables, origin);
      // What an operation delegates ends with it.
      const answer = await plan.answer(call).finally(() => whole ?? call.end());
      const { errors, ...result } = await resultOf(answer);
      return { ...result, ...(errors && { errors: errors.map(mask) }) };
    } catch (error) {
      return { errors: errorsThrown(error).map(mask) };
    }
  };
}

/** Unlike the name of every caller with a credential, and the address of every other one. */
const ADDRESS = 'in-process';
