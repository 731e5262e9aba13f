import { codeOfAnswer, writeAnswer } from '../../answers/write-answer.ts';
import { knownCode } from '../../errors.ts';
import type { CallVariables } from '../../plans/call.ts';
import type { OperationPlan } from '../../plans/plan-operation.ts';
import type { Planner } from '../../plans/planner.ts';
import type { Exchange, Reply } from '../exchange/exchange.ts';
import { jsonTypeFor } from '../execution/accept.ts';
import type { Answer } from './check-operation.ts';

export interface AnswerParts {
  readonly planner: Pick<Planner, 'createCall'>;
  /** What every error goes through that the service did not send. */
  readonly mask: (error: unknown) => Error;
}

/** Answers operations by their plans. */
export function answerOperation({ planner, mask }: AnswerParts): Answer<OperationPlan> {
  return (operation, values, exchange) => {
    const type = jsonTypeFor(exchange.header('accept'));
    if (!type) return undefined;
    const call = planner.createCall({
      variables: variablesOf(exchange, values),
      payer: exchange.payer!,
      signal: () => exchange.signal,
      cause: exchange.cause,
    });
    return operation.plan.answer(call).then((answer): Reply => {
      const code = codeOfAnswer(answer.errors, mask);
      if (code !== undefined) exchange.outcome = knownCode(code);
      return { status: 200, headers: { 'content-type': type }, body: writeAnswer(answer, mask) };
    });
  };
}

function variablesOf({ params, exactVariables }: Exchange, values: CallVariables['values']): CallVariables {
  const given = (params['variables'] ?? {}) as Record<string, unknown>;
  return {
    values,
    text: (name) => {
      if (!Object.hasOwn(given, name)) return undefined;
      return exactVariables?.get(name)?.raw ?? JSON.stringify(given[name]);
    },
  };
}
