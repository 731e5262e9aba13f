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
import type { Answer, Exchange, MaskFor, Reply } from '../exchange.ts';
import {
  accepted,
  FORMATS,
  jsonPart,
  multipartReply,
  onePartReply,
  type Accepted,
} from './formats.ts';

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
    const accepts = accepted(exchange.header('accept'));
    const { json, parts, prefersParts } = accepts;
    const { plan, isIncremental } = operation;
    if (!json && !parts) {
      if (isIncremental) throw unsupportedFormat();
      return undefined;
    }
    const call = planner.createCall(exchange.variables, exchange);
    exchange.onEnd(() => call.end());
    const payloads = isIncremental && (prefersParts || !json) ? plan.stream(call) : undefined;
    if (!payloads) return answerWhole(plan, call, { exchange, accepts });
    if (!parts || parts === 'unknown') throw unsupportedFormat();
    return answerInParts(payloads, parts, { exchange, accepts });
  };

  function answerWhole(
    plan: OperationPlan,
    call: Call,
    { exchange, accepts }: Accepting,
  ): Promise<Reply> {
    return plan.answer(call).then((answer) => {
      const mask = masked(exchange);
      report(answer.errors, exchange, mask);
      return wholeReply(writeAnswer(answer, mask), accepts);
    });
  }

  async function answerInParts(
    payloads: Payloads,
    format: IncrementalFormat,
    { exchange, accepts }: Accepting,
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
      if (first.hasNext) return multipartReply(format, partsFrom(write(first)));
      report(errorsIn(first), exchange, mask);
      const reply = wholeReply(writeAnswer(first.first!, mask), accepts);
      await payloads.return();
      return reply;
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
  readonly accepts: Accepted;
}

function wholeReply(body: (string | Buffer)[], { json, parts }: Accepted): Reply {
  if (!json) return onePartReply(parts, body);
  return { status: 200, headers: { 'content-type': json }, body };
}

function report(errors: readonly AnswerError[], exchange: Exchange, mask: Mask): void {
  const code = codeOfFirst(errors, mask);
  if (code !== undefined) exchange.outcome ??= knownCode(code);
}

function errorsIn({ first, incremental = [] }: Payload): readonly AnswerError[] {
  return first?.errors ?? incremental.flatMap(({ errors }) => errors);
}

type Payloads = AsyncGenerator<Payload, void, undefined>;

function unsupportedFormat() {
  return codedError(
    'BAD_USER_INPUT',
    `This gateway sends incremental answers only as multipart/mixed, in two formats. Send "accept: ${FORMATS.join('" or "')}", ` +
      'or accept application/json to get one whole answer.',
    { extensions: { http: { status: 406 } } },
  );
}
