import type { ExecutionResult, GraphQLError } from 'graphql';
import {
  JsonText,
  resultOf,
  writeAnswer,
  writeErrors,
  type Answer,
  type AnswerError,
} from '../engine/answer.ts';
import type { Call, CallVariables } from '../engine/call.ts';
import type { Engine } from '../engine/engine.ts';
import type { Plan } from '../engine/plan.ts';
import type { Increment, Payload } from '../engine/stream.ts';
import { codeOf, knownCode } from '../errors.ts';
import type { MaskFor } from './error-policy.ts';
import { CALLER_LEFT, type Exchange } from './exchange.ts';
import { accepted, multipartReply, type Accepted } from './formats.ts';
import type { Asked } from './operation.ts';
import { JSON_TYPE, type Body, type Piece, type Reply } from './reply.ts';
import {
  httpOf,
  isParts,
  payloadResult,
  writeResult,
  type MaskAny,
  type PayloadResult,
  type Results,
} from './results.ts';

/** A checked operation, with the values of its variables. */
export interface Ready extends Asked<Plan> {
  readonly variables: CallVariables;
}

interface AnswersParts {
  readonly engine: Pick<Engine, 'createCall'>;
  /** Masks unexpected errors. Errors of the service are not passed to it. */
  readonly mask: MaskFor;
}

export type Answers = ReturnType<typeof createAnswers>;

/**
 * Answers checked operations by their plans: in parts, as `multipart/mixed`, if the operation has a `@stream` and the
 * caller accepts parts; otherwise whole. What is thrown before anything is sent is answered as a refused request.
 */
export function createAnswers({ engine, mask: maskFor }: AnswersParts) {
  /** Masks an error, and notes the first one of an answer for telemetry. */
  const maskIn =
    (exchange: Exchange): MaskAny =>
    (error) => {
      const masked = maskFor(error, exchange);
      note(exchange, codeOf(masked));
      return masked;
    };

  return {
    /** Replies with the texts of the plan as they are. It may be the last step if no plugin sees results. */
    answer: async (ready: Ready): Promise<Reply> => {
      const { exchange } = ready;
      const { accepts, plan, call, payloads } = begin(ready);
      const mask = maskIn(exchange);
      const whole = (answer: Answer) => {
        noteService(exchange, answer.errors);
        return wholeReply(writeAnswer(answer, mask), accepts);
      };
      if (!payloads) return whole(await plan.answer(call));
      const first = await firstOf(payloads);
      if (!first.hasNext) return whole(first.first!);
      const write = (payload: Payload) => {
        noteService(exchange, errorsIn(payload));
        return writePayload(payload, mask);
      };
      return multipartReply(written(write(first), payloads, write));
    },

    /** Makes results, for plugins. */
    execute: async (ready: Ready): Promise<Results> => {
      const { plan, call, payloads } = begin(ready);
      if (!payloads) {
        const answer = await plan.answer(call);
        holdValues(call, answer);
        return withoutHttp(await resultOf(answer));
      }
      const first = await firstOf(payloads);
      const result = withoutHttp(await payloadResult(first));
      return first.hasNext ? written(result, payloads, payloadResult) : result;
    },

    /** Makes the reply of results, also of those that plugins have made. */
    replyOf: async (results: Results, exchange: Exchange): Promise<Reply> => {
      const accepts = acceptedBy(exchange);
      const mask = maskIn(exchange);
      if (isParts(results)) return multipartReply(writtenParts(results, mask));
      const { status, headers } = httpOf(results, accepts.json === JSON_TYPE);
      const reply = wholeReply(await writeResult(results, mask), accepts);
      return { ...reply, status, headers: { ...headers, ...reply.headers } };
    },
  };

  function begin(ready: Ready) {
    const { exchange, variables } = ready;
    const { plan, isIncremental } = ready.operation;
    const accepts = acceptedBy(exchange);
    const call = engine.createCall(variables, exchange);
    exchange.onEnd(() => call.end());
    const payloads = isIncremental && accepts.parts ? plan.stream(call) : undefined;
    return { accepts, plan, call, payloads };
  }
}

function acceptedBy(exchange: Exchange): Accepted {
  return accepted(exchange.header('accept'));
}

type Payloads = AsyncGenerator<Payload, void, undefined>;

/** Awaited before the reply begins, so that its failure still refuses the request. */
async function firstOf(payloads: Payloads): Promise<Payload> {
  const { value } = await payloads.next();
  return value!;
}

async function* written<T>(
  first: T,
  payloads: Payloads,
  write: (payload: Payload) => T | Promise<T>,
): AsyncGenerator<T, void, undefined> {
  try {
    yield first;
    for await (const payload of payloads) yield await write(payload);
  } finally {
    await payloads.return();
  }
}

/** Writes the payloads that plugins have seen. A failure is the last one: clients would wait for another. */
async function* writtenParts(
  results: AsyncIterable<PayloadResult>,
  mask: MaskAny,
): AsyncGenerator<readonly Piece[], void, undefined> {
  try {
    for await (const result of results) {
      // Yoga makes such a result when a plugin throws.
      const { data, errors, hasNext } = result;
      if (errors && data === undefined && hasNext === undefined) throw errors[0] ?? CALLER_LEFT;
      yield await writeResult(result, mask);
    }
  } catch (error) {
    yield await writeResult({ errors: [error as GraphQLError], hasNext: false }, mask);
  }
}

/** In JSON also for callers that accept only parts: those who read parts look at the content type first. */
function wholeReply(body: Body, { json }: Accepted): Reply {
  return { status: 200, headers: { 'content-type': json }, body };
}

function writePayload({ first, incremental = [], hasNext }: Payload, mask: MaskAny): Piece[] {
  if (first) return writeAnswer(first, mask, ',"hasNext":true');
  const entries = incremental.flatMap((increment, at) => [
    at === 0 ? '{"incremental":[' : ',',
    ...writeIncrement(increment, mask),
  ]);
  return [...entries, `${entries.length > 0 ? '],' : '{'}"hasNext":${hasNext}}`];
}

function writeIncrement(
  { path, label, items, errors, extensions }: Increment,
  mask: MaskAny,
): Piece[] {
  const named = label === undefined ? '' : `,"label":${JSON.stringify(label)}`;
  const failed = errors.length > 0 ? `,"errors":${writeErrors(errors, mask)}` : '';
  const extended = extensions ? `,"extensions":${JSON.stringify(extensions)}` : '';
  const rest = `,"path":${JSON.stringify(path)}${named}${failed}${extended}}`;
  return items ? ['{"items":[', ...items, `]${rest}`] : [`{"items":null${rest}`];
}

function errorsIn({ first, incremental = [] }: Payload): readonly AnswerError[] {
  return first?.errors ?? incremental.flatMap(({ errors }) => errors);
}

/** Notes the first error of an answer if it is one of the service, which is not masked. */
function noteService(exchange: Exchange, [first]: readonly AnswerError[]): void {
  if (first && 'service' in first) note(exchange, 'OTHER');
}

function note(exchange: Exchange, code: unknown): void {
  exchange.notes.outcome ??= knownCode(code);
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

/** From here on, `http` is what plugins write: neither the service nor an error at a field decides about the response. */
function withoutHttp<R extends ExecutionResult>(result: R): R {
  const { extensions, errors = [] } = result;
  for (const of of [extensions, ...errors.map((error) => error.extensions)]) delete of?.['http'];
  return result;
}
