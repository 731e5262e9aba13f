import {
  callerPath,
  isOfService,
  type AnswerError,
  type UpstreamError,
} from '../../answers/answer-errors.ts';
import { readEnvelope, slotScanner, slotsIn, type Slot } from '../../answers/envelope.ts';
import { NO_PAGES } from '../../answers/nulling-pages.ts';
import { readValue } from '../../answers/read.ts';
import type { DeferredReading, Part } from '../../answers/read.ts';
import type { TooBig } from '../../errors.ts';
import type { Json } from '../../json.ts';
import type { Pausable } from '../../pausable.ts';
import { isPlaceholder } from '../output.ts';

/** The answer of the service to the forwarded fields. Callers who send the same request share it. */
export interface ForwardedAnswer {
  /** Null if a null propagated to the root; undefined if the service did not execute the request. */
  readonly data: ForwardedData | null | undefined;
  /** The errors of the service, and those of values that their types do not allow. */
  readonly errors: readonly AnswerError[];
  /** The `extensions` of the answer, as they were written. */
  readonly extensions: string | undefined;
  /** The keys of the inlined pages whose failure also nulled their parent. */
  readonly nullingPages: ReadonlySet<string>;
  /** Why the request was refused as a whole, if that was for its size. */
  readonly tooBig?: TooBig | undefined;
  /** Bytes. */
  readonly size: number;
}

export interface ForwardedData {
  /** All fields, with their keys. */
  readonly whole: readonly Part[];
  /** The value of one field. @param field its index */
  readonly valueOf: (field: number) => readonly Part[];
  /** What `@defer` puts off, by the index of the field that it is in. */
  readonly deferred: readonly (readonly DeferredReading[])[];
}

/** Makes a function that takes an answer as bytes; it returns undefined for one that has to be read in general. */
export function forwardedScanner(
  fields: readonly Slot[],
): (bytes: Buffer) => Pausable<ForwardedAnswer | undefined> {
  const scan = slotScanner(fields);
  return function* scanned(bytes) {
    const slots = yield* scan(bytes);
    if (!slots) return undefined;
    const { whole, at, extensions } = slots;
    return {
      data: {
        whole: [whole],
        valueOf: (field) => [whole.subarray(at[2 * field], at[2 * field + 1])],
        deferred: NOTHING,
      },
      errors: NO_ERRORS,
      extensions,
      nullingPages: NO_PAGES,
      size: bytes.length,
    };
  };
}

const NO_ERRORS: readonly AnswerError[] = [];
const NOTHING: readonly never[] = [];

/** Reads an answer in general, whatever its form. */
export function* readForwarded(
  answer: Json,
  fields: readonly Slot[],
  status: number,
): Pausable<ForwardedAnswer> {
  const envelope = yield* readEnvelope(answer, status);
  const { data, errors } = envelope;
  const isNull = data === undefined || data.isNull;
  if (isNull && errors.length > 0) {
    return { ...envelope, data: data && null, errors: errors.map(asCallerSees) };
  }
  const { slots, unplaced } = slotsIn(
    envelope,
    fields.map(({ key }) => key),
  );
  const reported: AnswerError[] = unplaced.map(asCallerSees);
  // An error without a path may explain any null.
  const isExplained = unplaced.some(({ path }) => !path);
  let isWhole = true;
  const deferred: DeferredReading[][] = [];
  const values: (readonly Part[])[] = [];
  for (const [field, { key, shape }] of fields.entries()) {
    const putOff: DeferredReading[] = [];
    deferred.push(putOff);
    if (shape.kind === 'typename') {
      values.push([JSON.stringify(shape.served)]);
      continue;
    }
    const { value, errors: ofField } = slots[field]!;
    const reading = yield* readValue(shape, value, ofField, isExplained);
    // As in graphql-js, nulls that propagate to the root have one error, and those of the service.
    const kept = isWhole ? reading.errors : reading.errors.filter(isOfService);
    for (const error of kept) reported.push({ ...error, path: [key, ...(error.path ?? [])] });
    if (!reading.parts) isWhole = false;
    for (const part of reading.deferred) putOff.push({ ...part, path: [key, ...part.path] });
    values.push(
      (reading.parts ?? []).map((part) =>
        isPlaceholder(part) ? { ...part, path: [key, ...part.path] } : part,
      ),
    );
  }
  const whole = () =>
    values.flatMap((parts, i): Part[] => [
      `${i > 0 ? ',' : ''}${JSON.stringify(fields[i]!.key)}:`,
      ...parts,
    ]);
  return {
    ...envelope,
    data: isWhole ? { whole: whole(), valueOf: (field) => values[field]!, deferred } : null,
    errors: reported.toSorted((a, b) => orderOf(a) - orderOf(b)),
  };
}

/** Sorts the errors of the service in its own order, and those of the gateway behind them. */
function orderOf(error: AnswerError): number {
  return isOfService(error) ? error.order : Number.MAX_SAFE_INTEGER;
}

function asCallerSees(error: UpstreamError): AnswerError {
  return error.path ? { ...error, path: callerPath(error.path) } : error;
}
