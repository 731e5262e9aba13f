import { codeOfFirst, type AnswerError } from '../../answers/answer-errors.ts';
import {
  writeAnswer,
  writePayload,
  type IncrementalFormat,
  type Payload,
} from '../../answers/write-answer.ts';
import { codedError, knownCode } from '../../errors.ts';
import type { Call, CallVariables } from '../../plans/call.ts';
import type { OperationPlan } from '../../plans/operation/plan-operation.ts';
import type { Planner } from '../../plans/planner.ts';
import {
  errorReply,
  JSON_TYPE,
  type Answer,
  type Exchange,
  type MaskFor,
  type Reply,
} from '../exchange.ts';
import { deliveryFor, FORMATS, jsonTypeFor, multipartReply } from './formats.ts';

export interface AnswerParts {
  readonly planner: Pick<Planner, 'createCall'>;
  /** Masks unexpected errors. Errors of the service are not passed to it. */
  readonly mask: MaskFor;
}

/**
 * Answers operations by their plans: in parts, as `multipart/mixed`, if the operation is incremental and the caller
 * accepts parts; otherwise whole.
 */
export function answerOperation({ planner, mask: maskFor }: AnswerParts): Answer<OperationPlan> {
  return (operation, values, exchange) => {
    const accept = exchange.header('accept');
    const type = jsonTypeFor(accept);
    if (!operation.isIncremental) return type || namesParts(accept) ? answerWhole() : undefined;
    const delivery = deliveryFor(accept);
    if (delivery === 'whole') return type ? answerWhole() : undefined;
    const call = callOf();
    const payloads = operation.plan.stream(call);
    if (!payloads) return answerWhole(call);
    return delivery === 'none' ? UNSUPPORTED_FORMAT : answerInParts(payloads, delivery);

    function mask(error: unknown): Error {
      return maskFor(error, exchange);
    }

    function callOf(): Call {
      const made = planner.createCall({
        variables: variablesOf(exchange, values),
        budgetOwner: exchange.budgetOwner!,
        signal: () => exchange.signal,
        cause: exchange.cause,
      });
      exchange.onEnd(() => made.end());
      return made;
    }

    function answerWhole(given = callOf()): Promise<Reply> {
      return operation.plan.answer(given).then((answer): Reply => {
        reportErrors(answer.errors);
        const body = writeAnswer(answer, mask);
        if (type || !namesParts(accept)) {
          return { status: 200, headers: { 'content-type': type ?? JSON_TYPE }, body };
        }
        return multipartReply(deliveryFor(accept), [body]);
      });
    }

    async function answerInParts(given: Payloads, format: IncrementalFormat): Promise<Reply> {
      // If the caller leaves before the body is read, nothing else ends the walks behind it.
      exchange.onLeave(() => void given.return().catch(() => {}));
      const { value: first } = await given.next();
      reportErrors(first?.first?.errors ?? []);
      if (first?.first && !first.hasNext && type) {
        await given.return();
        const body = writeAnswer(first.first, mask);
        return { status: 200, headers: { 'content-type': type }, body };
      }
      return multipartReply(format, textsOf(first!, given, format));
    }

    async function* textsOf(first: Payload, further: Payloads, format: IncrementalFormat) {
      try {
        yield writePayload(first, format, mask);
        for await (const payload of further) {
          reportErrors(payload.incremental?.flatMap(({ errors }) => errors) ?? []);
          yield writePayload(payload, format, mask);
        }
      } finally {
        await further.return();
      }
    }

    function reportErrors(errors: readonly AnswerError[]): void {
      const code = codeOfFirst(errors, mask);
      if (code !== undefined) exchange.outcome ??= knownCode(code);
    }
  };
}

type Payloads = AsyncGenerator<Payload, void, undefined>;

function namesParts(accept = ''): boolean {
  return /multipart\/mixed/i.test(accept);
}

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
    `This gateway sends incremental answers only as multipart/mixed, in two formats. Send "accept: ${FORMATS.join('" or "')}", ` +
      'or accept only application/json to get one whole answer.',
  ),
);
