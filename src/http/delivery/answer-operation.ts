import { codeOfFirst, type AnswerError, type Mask } from '../../answers/answer-errors.ts';
import {
  OpenParts,
  writeAnswer,
  writePayload,
  type IncrementalFormat,
  type Payload,
} from '../../answers/write-answer.ts';
import { codedError, knownCode } from '../../errors.ts';
import type { Call } from '../../plans/call.ts';
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
import { deliveryFor, FORMATS, jsonPart, jsonTypeFor, multipartReply } from './formats.ts';

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
  return (operation, exchange) => {
    const accept = exchange.header('accept');
    const type = jsonTypeFor(accept);
    const { plan, isIncremental } = operation;
    const delivery = isIncremental ? deliveryFor(accept) : 'whole';
    if (delivery === 'whole' && !type && (isIncremental || !namesParts(accept))) return undefined;
    const call = planner.createCall(exchange.variables, exchange);
    exchange.onEnd(() => call.end());
    const payloads = delivery === 'whole' ? undefined : plan.stream(call);
    if (!payloads) return answerWhole(plan, call, { exchange, accept, type });
    if (delivery === 'none') return UNSUPPORTED_FORMAT;
    return answerInParts(payloads, delivery as IncrementalFormat, { exchange, accept, type });
  };

  function answerWhole(
    plan: OperationPlan,
    call: Call,
    { exchange, accept, type }: Accepting,
  ): Promise<Reply> {
    return plan.answer(call).then((answer): Reply => {
      const mask = masked(exchange);
      report(answer.errors, exchange, mask);
      const body = writeAnswer(answer, mask);
      if (type || !namesParts(accept)) {
        return { status: 200, headers: { 'content-type': type ?? JSON_TYPE }, body };
      }
      return multipartReply(deliveryFor(accept), [jsonPart(body)]);
    });
  }

  async function answerInParts(
    payloads: Payloads,
    format: IncrementalFormat,
    { exchange, type }: Accepting,
  ): Promise<Reply> {
    // If the caller leaves before the body is read, nothing else ends a walk that is read for it alone.
    exchange.onLeave(() => void payloads.return().catch(() => {}));
    const mask = masked(exchange);
    const open = new OpenParts();
    const write = (payload: Payload) => {
      report(errorsIn(payload), exchange, mask);
      const text = writePayload(payload, format, mask);
      const part = text && jsonPart(text);
      open.sent(payload);
      return part;
    };
    const { value: first } = await payloads.next();
    // The caller had left before: `return` came before `next`.
    if (!first) throw exchange.signal.reason;
    try {
      if (first.hasNext || !type) return multipartReply(format, partsFrom(write(first)));
      report(errorsIn(first), exchange, mask);
      const body = writeAnswer(first.first!, mask);
      await payloads.return();
      return { status: 200, headers: { 'content-type': type }, body };
    } catch (error) {
      await payloads.return();
      throw error;
    }

    /** @param begun is written before the reply begins, so that its failure still refuses the request */
    async function* partsFrom(begun: ReturnType<typeof write>) {
      try {
        yield begun;
        for await (const payload of payloads) yield write(payload);
      } catch (error) {
        yield write(open.failed({ thrown: error, path: undefined }));
      } finally {
        await payloads.return();
      }
    }
  }

  /** Masks an error once, since what is masked is logged: the first of an answer is read for its code, then written. */
  function masked(exchange: Exchange): Mask {
    let last: { readonly error: unknown; readonly masked: Error } | undefined;
    return (error) => {
      if (!last || last.error !== error) last = { error, masked: maskFor(error, exchange) };
      return last.masked;
    };
  }
}

interface Accepting {
  readonly exchange: Exchange;
  readonly accept: string | undefined;
  readonly type: ReturnType<typeof jsonTypeFor>;
}

function report(errors: readonly AnswerError[], exchange: Exchange, mask: Mask): void {
  const code = codeOfFirst(errors, mask);
  if (code !== undefined) exchange.outcome ??= knownCode(code);
}

function errorsIn({ first, incremental = [] }: Payload): readonly AnswerError[] {
  return first?.errors ?? incremental.flatMap(({ errors }) => errors);
}

type Payloads = AsyncGenerator<Payload, void, undefined>;

function namesParts(accept = ''): boolean {
  return /multipart\/mixed/i.test(accept);
}

const UNSUPPORTED_FORMAT = errorReply(
  406,
  codedError(
    'BAD_USER_INPUT',
    `This gateway sends incremental answers only as multipart/mixed, in two formats. Send "accept: ${FORMATS.join('" or "')}", ` +
      'or accept only application/json to get one whole answer.',
  ),
);
