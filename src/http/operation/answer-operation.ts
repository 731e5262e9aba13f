import { codeOfFirst, type AnswerError } from '../../answers/answer-errors.ts';
import { writeAnswer, writePayload, type Payload } from '../../answers/write-answer.ts';
import { codedError, knownCode } from '../../errors.ts';
import type { Call, CallVariables } from '../../plans/call.ts';
import type { OperationPlan } from '../../plans/operation/plan-operation.ts';
import type { Planner } from '../../plans/planner.ts';
import type { Exchange, Reply } from '../exchange/exchange.ts';
import { deliveryFor, jsonTypeFor, SPEC } from '../execution/accept.ts';
import { multipartReply } from '../execution/multipart.ts';
import type { Answer } from './check-operation.ts';

export interface AnswerParts {
  readonly planner: Pick<Planner, 'createCall'>;
  /** What every error goes through that the service did not send. */
  readonly mask: (error: unknown) => Error;
}

/**
 * Answers operations by their plans: in parts, as `multipart/mixed`, where the operation asks for that and the caller
 * can read it; else whole.
 */
export function answerOperation({ planner, mask }: AnswerParts): Answer<OperationPlan> {
  return (operation, values, exchange) => {
    const accept = exchange.header('accept');
    const type = jsonTypeFor(accept);
    const delivery = operation.isIncremental ? deliveryFor(accept) : 'whole';
    if (!type && !operation.isIncremental) return multipartOnly(accept) ? answerWhole() : undefined;
    if (delivery === 'whole') return type ? answerWhole() : undefined;
    const call = callOf();
    const payloads = operation.plan.stream(call);
    if (!payloads) return answerWhole(call);
    if (delivery === 'none') return notSpoken();
    return answerInParts(payloads);

    function callOf(): Call {
      const made = planner.createCall({
        variables: variablesOf(exchange, values),
        payer: exchange.payer!,
        signal: () => exchange.signal,
        cause: exchange.cause,
      });
      exchange.onEnd(made.held.release);
      return made;
    }

    function answerWhole(given = callOf()): Promise<Reply> {
      return operation.plan.answer(given).then((answer): Reply => {
        note(answer.errors);
        const body = writeAnswer(answer, mask);
        if (type || !accept?.includes('multipart')) {
          return { status: 200, headers: { 'content-type': type ?? JSON_TYPE }, body };
        }
        return multipartReply(
          { first: { ...answer, parts: answer.data }, hasNext: false },
          nothing(),
          mask,
        );
      });
    }

    async function answerInParts(given: AsyncGenerator<Payload, void, undefined>): Promise<Reply> {
      const { value: first } = await given.next();
      note(first?.first?.errors ?? []);
      if (first && !first.hasNext && type) {
        await given.return();
        return {
          status: 200,
          headers: { 'content-type': type },
          body: writePayload(first, mask, true),
        };
      }
      return multipartReply(first!, noted(given), mask);
    }

    async function* noted(given: AsyncGenerator<Payload, void, undefined>): typeof given {
      try {
        for await (const payload of given) {
          note(payload.incremental?.flatMap(({ errors }) => errors) ?? []);
          yield payload;
        }
      } finally {
        await given.return();
      }
    }

    function note(errors: readonly AnswerError[]): void {
      const code = codeOfFirst(errors, mask);
      if (code !== undefined) exchange.outcome ??= knownCode(code);
    }
  };
}

const JSON_TYPE = 'application/json; charset=utf-8';

function multipartOnly(accept = ''): boolean {
  return /multipart\/mixed/i.test(accept);
}

async function* nothing(): AsyncGenerator<Payload, void, undefined> {}

function variablesOf(
  { params, exactVariables }: Exchange,
  values: CallVariables['values'],
): CallVariables {
  const given = (params['variables'] ?? {}) as Record<string, unknown>;
  return {
    values,
    text: (name) => {
      if (!Object.hasOwn(given, name)) return undefined;
      return exactVariables?.get(name)?.raw ?? JSON.stringify(given[name]);
    },
  };
}

function notSpoken(): Reply {
  const error = codedError(
    'BAD_USER_INPUT',
    'What comes later is sent here as multipart/mixed, in the format of 2022-08-24. Send "accept: ' +
      `multipart/mixed;deferSpec=${SPEC}", or accept application/json alone to get everything in one answer.`,
  );
  return {
    status: 406,
    headers: { 'content-type': JSON_TYPE },
    body: JSON.stringify({ errors: [error] }),
  };
}
