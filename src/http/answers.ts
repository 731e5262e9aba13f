import type { ExecutionResult } from 'graphql';
import { JsonText, resultOf, writeAnswer, type Answer, type ShowError } from '../engine/answer.ts';
import type { Call } from '../engine/call.ts';
import type { Engine } from '../engine/engine.ts';
import type { ErrorPolicy } from './error-policy.ts';
import type { Ready } from './operation.ts';
import { multipartReply } from './parts.ts';
import { accepted, type Reply } from './reply.ts';
import { shownError } from './results.ts';

export type Answers = ReturnType<typeof createAnswers>;

/** Answers checked operations by their plans. What is thrown before anything is sent is answered as a refused request. */
export function createAnswers(
  engine: Pick<Engine, 'createCall'>,
  errors: Pick<ErrorPolicy, 'mask'>,
) {
  const begin = ({ exchange, variables }: Ready): Call => {
    const call = engine.createCall(variables, exchange);
    exchange.onEnd(() => call.end());
    return call;
  };

  return {
    /**
     * Replies with the texts of the plan as they are: in parts, as `multipart/mixed`, if the operation has a `@stream`
     * and the caller accepts parts; otherwise whole.
     */
    reply: async (ready: Ready): Promise<Reply> => {
      const { exchange } = ready;
      const { plan } = ready.operation;
      const accepts = accepted(exchange.header('accept'));
      const call = begin(ready);
      const show: ShowError = (error) => {
        const { path } = error;
        if (!('service' in error)) return shownError(errors.mask(error.thrown, exchange), path);
        exchange.outcome ??= 'OTHER';
        const { message, ...members } = error.service;
        return { message, path, ...members };
      };
      // In JSON also for callers that accept only parts: those who read parts look at the content type first.
      const whole = (answer: Answer): Reply => {
        const headers = { 'content-type': accepts.json };
        return { status: 200, headers, body: writeAnswer(answer, show) };
      };
      const payloads = accepts.parts ? plan.stream(call) : undefined;
      if (!payloads) return whole(await plan.answer(call));
      const { value: first } = await payloads.next();
      return first!.hasNext ? multipartReply(first!, payloads, show) : whole(first!.first!);
    },

    /** Makes a result of values, for plugins. A `@stream` is answered whole. */
    execute: async (ready: Ready): Promise<ExecutionResult> => {
      const call = begin(ready);
      const answer = await ready.operation.plan.answer(call);
      holdValues(call, answer);
      const result = await resultOf(answer);
      // From here on, `http` is what plugins write: neither the service nor an error at a field decides about it.
      for (const { extensions } of [result, ...(result.errors ?? [])]) delete extensions?.['http'];
      return result;
    },
  };
}

/** The memory of values, in multiples of their text: of records with some short members. */
const MEMORY_OF_VALUES = 4;

/** Counts the values that are made of an answer. @throws OPERATION_TOO_COMPLEX, RATE_LIMITED */
function holdValues(call: Call, { data }: Answer): void {
  let length = 0;
  for (const value of Object.values(data ?? {})) {
    if (value instanceof JsonText) for (const piece of value.pieces) length += piece.length;
  }
  call.hold({}, MEMORY_OF_VALUES * length);
}
