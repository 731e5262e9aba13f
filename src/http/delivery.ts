import type { ExecutionResult } from 'graphql';
import { isOfService, type AnswerError, type Mask } from '../answers/answer-errors.ts';
import {
  createPayload,
  createResult,
  httpOf,
  writeResult,
  type PayloadResult,
} from '../answers/result.ts';
import {
  OpenParts,
  writeAnswer,
  writePayload,
  type Payload,
  type WholeAnswer,
} from '../answers/write-answer.ts';
import { codedError, codeOf, knownCode } from '../errors.ts';
import type { CheckedOperation } from '../operations/operations.ts';
import type { Call } from '../plans/call.ts';
import type { OperationPlan, Planner } from '../plans/planner.ts';
import {
  CALLER_LEFT,
  JSON_TYPE,
  type Body,
  type Piece,
  type Reply,
  type Exchange,
  type MaskFor,
} from './exchange.ts';

/** Which formats of answers a caller accepts. */
interface Accepted {
  /** The content type of an answer in one piece; undefined if none of its types is accepted. */
  readonly json: JsonType | undefined;
  /** Whether parts are accepted; `unknown` if only other formats of parts are, undefined without any. */
  readonly parts: 'known' | 'unknown' | undefined;
  /** Whether an incremental operation is answered in parts, although `json` may be accepted too. */
  readonly prefersParts: boolean;
}

const GRAPHQL_TYPE = 'application/graphql-response+json; charset=utf-8';
type JsonType = typeof JSON_TYPE | typeof GRAPHQL_TYPE;

/**
 * Reads an `accept` header (RFC 9110, 12.5.1): the most specific range that matches a type decides about it. Of equal
 * quality values, the type that is named first is preferred, and parts are preferred to JSON. Only a caller that names
 * `multipart/mixed` gets parts: `*\/*` does not show that a client can join them, and every client reads JSON.
 */
export function accepted(header = ''): Accepted {
  if (header === '' || header === '*/*' || header === 'application/json') return ONLY_JSON;
  const ranges = mediaRanges(header);
  const [best] = JSON_TYPES.map(({ type, names }) => ({ type, ...matchOf(ranges, names) }))
    .filter(({ quality }) => quality > 0)
    .toSorted((a, b) => b.quality - a.quality || a.place - b.place);
  const multipart = ranges
    .filter(({ name, quality }) => name === MULTIPART && quality > 0)
    .toSorted((a, b) => b.quality - a.quality);
  const known = multipart.find(isKnownFormat);
  return {
    json: best?.type,
    parts: known ? 'known' : multipart.length > 0 ? 'unknown' : undefined,
    prefersParts: known !== undefined && known.quality >= (best?.quality ?? 0),
  };
}

const ONLY_JSON: Accepted = { json: JSON_TYPE, parts: undefined, prefersParts: false };
const ANY = ['application/*', '*/*'];
/** With the range names that match each type, the most specific first. */
const JSON_TYPES = [
  { type: JSON_TYPE, names: ['application/json', ...ANY] },
  { type: GRAPHQL_TYPE, names: ['application/graphql-response+json', ...ANY] },
] as const;
const MULTIPART = 'multipart/mixed';

/** Returns the quality value of a type, and the position in the header of the range that it comes from. */
function matchOf(ranges: readonly MediaRange[], names: readonly string[]) {
  for (const name of names) {
    const place = ranges.findIndex((range) => range.name === name && isUtf8(range));
    if (place >= 0) return { quality: ranges[place]!.quality, place };
  }
  return { quality: 0, place: 0 };
}

/** `utf8` is not a registered name (RFC 9110, 8.3.2), but many clients send it. */
function isUtf8({ parameters }: MediaRange): boolean {
  return ['utf-8', 'utf8'].includes(parameters.get('charset') ?? 'utf-8');
}

/** The format of parts: the proposal of 2022-08-24, which places each part by its path. */
const FORMAT = '20220824';
/** The parameter of `multipart/mixed` that names the format. */
const PARAMETER = `deferSpec=${FORMAT}`;

/** Some clients, such as urql, send no parameter, and read streamed lists in this format. */
function isKnownFormat({ parameters }: MediaRange): boolean {
  const named = [...parameters].filter(([name]) => name.endsWith('spec'));
  return named.every(([name, value]) => `${name}=${value}` === PARAMETER.toLowerCase());
}

interface MediaRange {
  readonly name: string;
  readonly parameters: ReadonlyMap<string, string>;
  readonly quality: number;
}

/** In the order of the header. */
function mediaRanges(accept: string): readonly MediaRange[] {
  return accept
    .toLowerCase()
    .split(',')
    .map((range) => {
      const [name = '', ...texts] = range.split(';').map((text) => text.trim());
      const parameters = new Map(texts.map(nameAndValue));
      return { name, parameters, quality: Number(parameters.get('q') ?? 1) };
    })
    .filter(({ name, quality }) => name !== '' && !Number.isNaN(quality));
}

function nameAndValue(parameter: string): [string, string] {
  const [name = '', value = ''] = parameter.split('=').map((text) => text.trim());
  return [name, value.replaceAll('"', '')];
}

/** Makes the reply of an answer in parts (multipart/mixed: RFC 2046, 5.1.3). */
function multipartReply(accepts: Accepted['parts'], body: Reply['body']): Reply {
  // A hyphen is its boundary.
  const type = `${MULTIPART}; boundary="-"${accepts === 'known' ? `; ${PARAMETER}` : ''}`;
  return { status: 200, headers: { 'content-type': type }, body };
}

/** Makes the reply of an answer that is a single part. */
export function onePartReply(
  accepts: Accepted['parts'],
  text: readonly (string | Buffer)[],
): Reply {
  return multipartReply(accepts, [DELIMITER, ...jsonPart(text), LAST]);
}

type Part = readonly Piece[];

async function* delimited(
  parts: AsyncIterable<Part | undefined>,
): AsyncGenerator<Body, void, undefined> {
  let before = [DELIMITER];
  for await (const part of parts) {
    if (part) yield [...before, ...part];
    before = [];
  }
  yield LAST;
}

const DELIMITER = '\r\n---';
/** Turns the delimiter after the last part into the closing one. */
const LAST = '--\r\n';

/** A part of an answer, with the delimiter after it, for which clients wait before they use the part. */
function jsonPart(text: readonly (string | Buffer)[]): Part {
  const length = text.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
  return [
    `\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${length}\r\n\r\n`,
    ...text,
    DELIMITER,
  ];
}

/**
 * Answers operations by their plans: in parts, as `multipart/mixed`, if the operation is incremental and the caller
 * accepts parts; otherwise whole. Each of these returns undefined if the caller accepts none of the formats.
 *
 * @throws errors that are answered as a refused request: with `errors`, and without `data`
 */
export interface Delivery {
  /** Makes the reply of the bytes at once, if no plugin has a hook for results. */
  readonly answer: (
    operation: CheckedOperation<OperationPlan>,
    exchange: Exchange,
  ) => Promise<Reply> | undefined;
  /** Makes results of the bytes, for plugins to read and to change. */
  readonly execute: (
    operation: CheckedOperation<OperationPlan>,
    exchange: Exchange,
  ) => Promise<Results> | undefined;
  /** Makes the reply of results, also of those that plugins have made. */
  readonly replyOf: (results: Results, exchange: Exchange) => Reply | undefined;
}

export type Results = ExecutionResult | AsyncIterable<PayloadResult>;

/** @param mask of unexpected errors. Errors of the service are not passed to it */
export function createDelivery({
  planner,
  mask: maskFor,
}: {
  readonly planner: Pick<Planner, 'createCall' | 'admit'>;
  readonly mask: MaskFor;
}): Delivery {
  return {
    answer: (operation, exchange) => {
      const begun = begin(operation, exchange);
      if (!begun) return undefined;
      const { accepts, mask } = begun;
      const whole = (answer: WholeAnswer) => wholeReply(writeAnswer(answer, mask), accepts);
      if (!begun.payloads) return inOne(begun, whole);
      const { payloads } = begun;
      const write = (payload: Payload) => {
        const text = writePayload(payload, FORMAT, mask);
        return text && jsonPart(text);
      };
      const parts = (all: AsyncIterable<ReturnType<typeof write>>) =>
        multipartReply('known', delimited(all));
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
      const { payloads } = begun;
      const write = (payload: Payload) => createPayload(payload, FORMAT, hold);
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
        if (parts !== 'known') throw unsupportedFormat();
        return multipartReply(parts, delimited(written(results, mask, failed)));
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

  /** Returns undefined if the caller accepts no format of the gateway. */
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
    if (parts !== 'known') throw unsupportedFormat();
    return { exchange, accepts, mask, payloads, call };
  }

  /**
   * Masks an error only once, since each masking is logged: the first error of an answer is read for its code, then
   * written.
   */
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
  // If the payloads are not read, because the caller leaves or a plugin fails, nothing else ends a walk that only they
  // need.
  exchange.onEnd(() => void payloads.return().catch(() => {}));
  const open = new OpenParts();
  const write = (payload: Payload): T => {
    report(errorsIn(payload), exchange, mask);
    return make.write(payload);
  };
  const { value: first } = await payloads.next();
  // The exchange had ended before: `return` came before `next`.
  if (!first) throw CALLER_LEFT;
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
  for await (const payload of all) if (payload) yield payload;
}

async function* written(
  results: AsyncIterable<PayloadResult>,
  mask: Mask,
  failed: Execution['failed'],
) {
  let isFirst = true;
  try {
    for await (const result of results) {
      // Yoga makes such a result when a plugin throws. Clients would not learn from it what failed, and that no part
      // follows.
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

/** Notes the outcome of a result that a plugin made instead of the plan, for example from a cache. */
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

/** Notes the code of the first error for telemetry. */
function report([first]: readonly AnswerError[], exchange: Exchange, mask: Mask): void {
  if (!first) return;
  const code = isOfService(first) ? (first.code ?? 'OTHER') : codeOf(mask(first.thrown));
  if (code !== undefined) exchange.outcome ??= knownCode(code);
}

function errorsIn({ first, incremental = [] }: Payload): readonly AnswerError[] {
  return first?.errors ?? incremental.flatMap(({ errors }) => errors);
}

type Payloads = AsyncGenerator<Payload, void, undefined>;

function unsupportedFormat() {
  return codedError(
    'BAD_USER_INPUT',
    `This gateway sends incremental answers only as multipart/mixed. Send "accept: ${MULTIPART};${PARAMETER}", ` +
      'or accept application/json to get one whole answer.',
    { extensions: { http: { status: 406 } } },
  );
}
