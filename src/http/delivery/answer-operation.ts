import { codeOfFirst, type AnswerError } from '../../answers/answer-errors.ts';
import { writeAnswer, writePayload, type Payload } from '../../answers/write-answer.ts';
import { codedError, knownCode } from '../../errors.ts';
import type { Call, CallVariables } from '../../plans/call.ts';
import type { OperationPlan } from '../../plans/operation/plan-operation.ts';
import type { Planner } from '../../plans/planner.ts';
import { errorReply, JSON_TYPE, type Answer, type Exchange, type Reply } from '../exchange.ts';
import { deliveryFor, jsonTypeFor, multipartReply, SPEC } from './formats.ts';

export interface AnswerParts {
  readonly planner: Pick<Planner, 'createCall'>;
  /** Masks unexpected errors. Errors of the service are not passed to it. */
  readonly mask: (error: unknown) => Error;
}

/**
 * Answers operations by their plans: in parts, as `multipart/mixed`, if the operation is incremental and the caller
 * accepts parts; otherwise whole.
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
    if (delivery === 'none') return UNSUPPORTED_FORMAT;
    return answerInParts(payloads);

    function callOf(): Call {
      const made = planner.createCall({
        variables: variablesOf(exchange, values),
        budgetOwner: exchange.budgetOwner!,
        signal: () => exchange.signal,
        cause: exchange.cause,
      });
      exchange.onEnd(made.held.release);
      return made;
    }

    function answerWhole(given = callOf()): Promise<Reply> {
      return operation.plan.answer(given).then((answer): Reply => {
        reportErrors(answer.errors);
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
      reportErrors(first?.first?.errors ?? []);
      if (first && !first.hasNext && type) {
        await given.return();
        return {
          status: 200,
          headers: { 'content-type': type },
          body: writePayload(first, mask, true),
        };
      }
      return multipartReply(first!, withReports(given), mask);
    }

    async function* withReports(given: AsyncGenerator<Payload, void, undefined>): typeof given {
      try {
        for await (const payload of given) {
          reportErrors(payload.incremental?.flatMap(({ errors }) => errors) ?? []);
          yield payload;
        }
      } finally {
        await given.return();
      }
    }

    function reportErrors(errors: readonly AnswerError[]): void {
      const code = codeOfFirst(errors, mask);
      if (code !== undefined) exchange.outcome ??= knownCode(code);
    }
  };
}

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

const UNSUPPORTED_FORMAT = errorReply(
  406,
  codedError(
    'BAD_USER_INPUT',
    'This gateway sends incremental answers only as multipart/mixed, in the format of 2022-08-24. Send "accept: ' +
      `multipart/mixed;deferSpec=${SPEC}", or accept only application/json to get one whole answer.`,
  ),
);
