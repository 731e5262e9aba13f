import {
  callerPath,
  isOfService,
  type AnswerError,
  type UpstreamError,
} from '../../answers/answer-errors.ts';
import { readValue } from '../../answers/read.ts';
import type { DeferredReading, Part } from '../../answers/reading.ts';
import { envelopeScanner, OF } from '../../answers/scan-envelope.ts';
import { scanner } from '../../answers/scan.ts';
import { readAnswer } from '../../answers/service-answer.ts';
import {
  objectShape,
  type FieldShape,
  type Shape,
  type TypenameShape,
} from '../../answers/shape.ts';
import { cut, type Tape } from '../../answers/tape.ts';
import { tooBigIn } from '../../answers/too-big.ts';
import type { TooBig } from '../../errors.ts';
import type { Json } from '../../json.ts';
import type { Pausable } from '../../pausable.ts';
import { isPlaceholder } from '../output.ts';
import { NO_PAGES, nullingPagesOf } from '../requests/nulling-pages.ts';

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

export type ForwardedShape = FieldShape & { readonly shape: Shape | TypenameShape };

/** Makes a function that takes an answer as bytes; it returns undefined for one that has to be read in general. */
export function forwardedScanner(
  fields: readonly ForwardedShape[],
): (bytes: Buffer) => Pausable<ForwardedAnswer | undefined> {
  return envelopeScanner({ scan: scanner(objectShape(OF, fields), { noted: fields }), take });

  function* take(bytes: Buffer, tape: Tape): Pausable<ForwardedAnswer> {
    const { dataAt, extensionsAt, extensionsEnd } = tape;
    const hasExtensions = bytes[extensionsAt] === 123;
    const extensions = hasExtensions
      ? bytes.toString('utf8', extensionsAt, extensionsEnd)
      : undefined;
    const places = tape.noted.slice(0, 2 * fields.length);
    const inside = [dataAt + 1, places.at(-1)!] as const;
    const { bytes: whole, at } =
      tape.cuts.length > 0
        ? yield* cut(bytes, inside, tape, places)
        : { bytes: bytes.subarray(...inside), at: places.map((place) => place - inside[0]) };
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
  }
}

const NO_ERRORS: readonly AnswerError[] = [];
const NOTHING: readonly never[] = [];

/** Reads an answer in general, whatever its form. */
export function* readForwarded(
  answer: Json,
  fields: readonly ForwardedShape[],
  { isQuery, status }: { readonly isQuery: boolean; readonly status: number },
): Pausable<ForwardedAnswer> {
  const { data, errors, extensions } = yield* readAnswer(answer);
  const nullingPages = isQuery ? yield* nullingPagesOf(data, errors) : NO_PAGES;
  const size = answer.length;
  const isNull = data === undefined || data.isNull;
  if (isNull && errors.length > 0) {
    return {
      data: data && null,
      errors: errors.map(asCallerSees),
      extensions,
      nullingPages,
      tooBig: tooBigIn({ data, errors }, status),
      size,
    };
  }
  const keys = new Set(fields.map(({ key }) => key));
  const unplaced = errors.filter(({ path }) => !path || !keys.has(String(path[0])));
  const found: AnswerError[] = unplaced.map(asCallerSees);
  // An error without a path may explain any null.
  const isExplained = unplaced.some(({ path }) => !path);
  let isWhole = true;
  const members = data?.members(keys);
  const deferred: DeferredReading[][] = [];
  const values: (readonly Part[])[] = [];
  for (const { key, shape } of fields) {
    const putOff: DeferredReading[] = [];
    deferred.push(putOff);
    if (shape.kind === 'typename') {
      values.push([JSON.stringify(shape.served)]);
      continue;
    }
    const own = errors.flatMap((error) =>
      error.path && error.path[0] === key ? [{ ...error, path: error.path.slice(1) }] : [],
    );
    const reading = yield* readValue(shape, members?.get(key), own, isExplained);
    // As in graphql-js, nulls that propagate to the root have one error, and those of the service.
    const told = isWhole ? reading.errors : reading.errors.filter(isOfService);
    for (const error of told) found.push({ ...error, path: [key, ...(error.path ?? [])] });
    if (!reading.parts) isWhole = false;
    for (const one of reading.deferred) putOff.push({ ...one, path: [key, ...one.path] });
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
    data: isWhole ? { whole: whole(), valueOf: (field) => values[field]!, deferred } : null,
    errors: found.toSorted((a, b) => orderOf(a) - orderOf(b)),
    extensions,
    nullingPages,
    size,
  };
}

/** Sorts the errors of the service in its own order, and those of the gateway behind them. */
function orderOf(error: AnswerError): number {
  return isOfService(error) ? error.order : Number.MAX_SAFE_INTEGER;
}

function asCallerSees(error: UpstreamError): AnswerError {
  return error.path ? { ...error, path: callerPath(error.path) } : error;
}
