import type { ExecutionResult } from 'graphql';
import { codeOfFirst, type AnswerError, type Mask } from '../../answers/answer-errors.ts';
import {
  createPayload,
  createResult,
  httpOf,
  writeResult,
  type PayloadResult,
} from '../../answers/result.ts';
import {
  OpenParts,
  writeAnswer,
  writePayload,
  type Payload,
  type WholeAnswer,
} from '../../answers/write-answer.ts';
import { codedError, codeOf, knownCode } from '../../errors.ts';
import type { CheckedOperation } from '../../operations/operations.ts';
import type { Call } from '../../plans/call.ts';
import type { OperationPlan } from '../../plans/operation/plan-operation.ts';
import type { Planner } from '../../plans/planner.ts';
import { JSON_TYPE, type Answer, type Exchange, type MaskFor, type Reply } from '../exchange.ts';
import {
  accepted,
  FORMATS,
  jsonPart,
  multipartReply,
  onePartReply,
  type Accepted,
} from './formats.ts';

export interface DeliveryParts {
  readonly planner: Pick<Planner, 'createCall' | 'admit'>;
  /** Masks unexpected errors. Errors of the service are not passed to it. */
  readonly mask: MaskFor;
}

/**
 * Answers operations by their plans: in parts, as `multipart/mixed`, if the operation is incremental and the caller
 * accepts parts; otherwise whole.
 */
export interface Delivery {
  /** Makes the reply of the bytes at once, if no plugin has a hook for results. */
  readonly answer: Answer<OperationPlan>;
  /** Makes results of the bytes, for plugins to read and to change. Undefined: see `Answer`. */
  readonly execute: (
    operation: CheckedOperation<OperationPlan>,
    exchange: Exchange,
  ) => Promise<Results> | undefined;
  /** Makes the reply of results, whoever has made them. Undefined: see `Answer`. */
  readonly replyOf: (results: Results, exchange: Exchange) => Reply | undefined;
}

export type Results = ExecutionResult | AsyncIterable<PayloadResult>;

export function createDelivery({ planner, mask: maskFor }: DeliveryParts): Delivery {
  return {
    answer: (operation, exchange) => {
      const begun = begin(operation, exchange);
      if (!begun) return undefined;
      const { accepts, mask } = begun;
      const whole = (answer: WholeAnswer) => wholeReply(writeAnswer(answer, mask), accepts);
      if (!begun.payloads) return inOne(begun, whole);
      const { payloads, format } = begun;
      const write = (payload: Payload) => {
        const text = writePayload(payload, format, mask);
        return text && jsonPart(text);
      };
      const parts = (all: AsyncIterable<ReturnType<typeof write>>) => multipartReply(format, all);
      return inParts(payloads, begun, { whole, write, parts });
    },

    execute: (operation, exchange) => {
      const begun = begin(operation, exchange);
      if (!begun) return undefined;
      const { mask } = begun;
      planner.admit(begun.call);
      const execution: Execution = { mask };
      (exchange as Executed)[EXECUTION] = execution;
      const hold = (bytes: number) => begun.call.holdAtOnce(bytes);
      const whole = (answer: WholeAnswer): Results => createResult(answer, hold);
      if (!begun.payloads) return inOne(begun, whole);
      const { payloads, format } = begun;
      const write = (payload: Payload) => createPayload(payload, format, hold);
      const parts: Parts<PayloadResult | undefined, Results> = (all, open) => {
        execution.failed = (error) => write(open.failed({ thrown: error, path: undefined }))!;
        return onlyDefined(all);
      };
      return inParts(payloads, begun, { whole, write, parts });
    },

    replyOf: (results, exchange) => {
      const accepts = accepted(exchange.header('accept'));
      const { json, parts } = accepts;
      const { mask, failed } = (exchange as Executed)[EXECUTION] ?? { mask: maskedOnce(exchange) };
      if (isAsync(results)) {
        if (!parts || parts === 'unknown') throw unsupportedFormat();
        return multipartReply(parts, written(results, mask, failed));
      }
      if (!json && !parts) return undefined;
      noteOutcome(results, exchange, mask);
      const { status, headers } = httpOf(results, json === JSON_TYPE);
      const reply = wholeReply(writeResult(results, mask), accepts);
      return {
        ...reply,
        status: status ?? reply.status,
        headers: { ...lowerCased(headers), ...reply.headers },
      };
    },
  };

  /** Undefined if the caller accepts none of the formats. */
  function begin({ plan, isIncremental }: CheckedOperation<OperationPlan>, exchange: Exchange) {
    const accepts = accepted(exchange.header('accept'));
    const { json, parts, prefersParts } = accepts;
    if (!json && !parts) {
      if (isIncremental) throw unsupportedFormat();
      return undefined;
    }
    const call = planner.createCall(exchange.variables, exchange);
    exchange.onEnd(() => call.end());
    const mask = maskedOnce(exchange);
    const payloads = isIncremental && (prefersParts || !json) ? plan.stream(call) : undefined;
    if (!payloads) return { exchange, accepts, mask, payloads, plan, call };
    if (!parts || parts === 'unknown') throw unsupportedFormat();
    return { exchange, accepts, mask, payloads, call, format: parts };
  }

  /** Masks an error once, since what is masked is logged: the first of an answer is read for its code, then written. */
  function maskedOnce(exchange: Exchange): Mask {
    let last: { readonly error: unknown; readonly masked: Error } | undefined;
    return (error) => {
      if (!last || last.error !== error) last = { error, masked: maskFor(error, exchange) };
      return last.masked;
    };
  }
}

function inOne<R>(
  { plan, call, exchange, mask }: Begun & { readonly plan: OperationPlan; readonly call: Call },
  make: (answer: WholeAnswer) => R,
): Promise<R> {
  return plan.answer(call).then((answer) => {
    report(answer.errors, exchange, mask);
    return make(answer);
  });
}

async function inParts<T, R>(
  payloads: Payloads,
  { exchange, mask }: Begun,
  make: {
    readonly whole: (answer: WholeAnswer) => R;
    readonly write: (payload: Payload) => T;
    readonly parts: Parts<T, R>;
  },
): Promise<R> {
  // If nobody reads the payloads, because the caller leaves or a plugin fails, nothing else ends a walk for them alone.
  exchange.onEnd(() => void payloads.return().catch(() => {}));
  const open = new OpenParts();
  const write = (payload: Payload): T => {
    report(errorsIn(payload), exchange, mask);
    return make.write(payload);
  };
  const { value: first } = await payloads.next();
  // The exchange had ended before: `return` came before `next`.
  if (!first) throw new DOMException('The caller left.', 'AbortError');
  try {
    if (first.hasNext) return make.parts(partsFrom(first, write(first)), open);
    report(errorsIn(first), exchange, mask);
    const whole = make.whole(first.first!);
    await payloads.return();
    return whole;
  } catch (error) {
    await payloads.return();
    throw error;
  }

  /** @param begun is written before the reply begins, so that its failure still refuses the request */
  async function* partsFrom(begin: Payload, begun: T): AsyncGenerator<T, void, undefined> {
    try {
      yield begun;
      open.sent(begin);
      for await (const payload of payloads) {
        yield write(payload);
        // A plugin may have failed with it.
        open.sent(payload);
      }
    } catch (error) {
      yield write(open.failed({ thrown: error, path: undefined }));
    } finally {
      await payloads.return();
    }
  }
}

interface Begun {
  readonly exchange: Exchange;
  readonly mask: Mask;
}

type Parts<T, R> = (parts: AsyncGenerator<T, void, undefined>, open: OpenParts) => R;

/** An operation whose results plugins see. */
interface Executed extends Exchange {
  [EXECUTION]?: Execution;
}

const EXECUTION = Symbol('execution');

interface Execution {
  /** Masks and logs each error once. */
  readonly mask: Mask;
  /** Makes the last payload of a stream that a plugin has made fail. */
  failed?: (error: unknown) => PayloadResult;
}

async function* onlyDefined<T>(
  all: AsyncIterable<T | undefined>,
): AsyncGenerator<T, void, undefined> {
  for await (const one of all) if (one) yield one;
}

async function* written(
  results: AsyncIterable<PayloadResult>,
  mask: Mask,
  failed: Execution['failed'],
) {
  let isFirst = true;
  try {
    for await (const result of results) {
      // Yoga makes such a one of what a plugin throws. Clients would not know what failed, and that nothing follows.
      const { data, errors, hasNext } = result;
      const isFailure = errors && data === undefined && hasNext === undefined;
      if (isFailure && (!isFirst || errors.length === 0)) throw errors[0];
      yield jsonPart(writeResult(result, mask));
      isFirst = false;
    }
  } catch (error) {
    const last = isFirst || !failed ? { errors: [error] } : failed(error);
    yield jsonPart(writeResult(last, mask));
  }
}

/** Of a result that a plugin has made instead of the plan: from a cache, for example. */
function noteOutcome({ errors }: ExecutionResult, exchange: Exchange, mask: Mask): void {
  // The plan has reported the errors of the operation that it has executed.
  if (exchange.isExecuted) return;
  exchange.operationType ??= exchange.operation?.type;
  const [first] = errors ?? [];
  if (first) exchange.outcome ??= knownCode(codeOf(mask(first)));
}

function isAsync(results: Results): results is AsyncIterable<PayloadResult> {
  return Symbol.asyncIterator in results;
}

function lowerCased(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
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
