import {
  callerPath,
  isOfService,
  type AnswerError,
  type UpstreamError,
} from '../../answers/answer-errors.ts';
import { readValue, type DeferredReading } from '../../answers/read.ts';
import { scanInAnyForm } from '../../answers/scan-any-form.ts';
import { matches } from '../../answers/scan-leaf.ts';
import { scanner } from '../../answers/scan.ts';
import { readAnswer } from '../../answers/service-answer.ts';
import type { FieldShape, ObjectShape, Shape, TypenameShape } from '../../answers/shape.ts';
import { cut, Tape } from '../../answers/tape.ts';
import type { Json } from '../../json.ts';
import type { Part } from '../output.ts';
import { NO_PAGES, nullingPagesOf } from '../requests/request-text.ts';

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

/** Makes a function that takes an answer as bytes; undefined for an answer that has to be read in general. */
export function forwardedScanner(
  fields: readonly ForwardedShape[],
): (bytes: Buffer) => ForwardedAnswer | undefined {
  const data: ObjectShape = { kind: 'object', nullable: false, type: '', fields };
  const scan = scanner(data, { noted: fields });
  const scanExtensions = scanner(ANYTHING);
  const tape = new Tape();
  const answer = [
    { key: 'data', shape: data, isSilent: false },
    { key: 'extensions', shape: ANYTHING, isSilent: false },
  ];
  return scanInAnyForm(
    (bytes) => {
      if (!matches(bytes, 0, DATA)) return undefined;
      tape.reset();
      const end = scan(bytes, DATA.length, tape);
      if (end < 0) return undefined;
      let extensions: string | undefined;
      let close = end;
      if (matches(bytes, end, EXTENSIONS)) {
        const start = end + EXTENSIONS.length;
        close = bytes[start] === 123 ? scanExtensions(bytes, start, tape) : -1;
        if (close < 0) return undefined;
        extensions = bytes.toString('utf8', start, close);
      }
      if (bytes[close] !== 125 || close + 1 !== bytes.length) return undefined;
      const hasCuts = tape.cuts.length > 0;
      const start = DATA.length + 1;
      const inside = hasCuts ? cut(bytes, start, end - 1, tape) : bytes.subarray(start, end - 1);
      const at = [...tape.noted];
      // The tape is used again, so the cuts are copied for `valueOf`, which may have to apply them.
      const cuts = hasCuts ? { cuts: [...tape.cuts], inserts: [...tape.inserts] } : undefined;
      return {
        data: {
          whole: [inside],
          valueOf: (field) => {
            const [from, to] = [at[2 * field]!, at[2 * field + 1]!];
            return [cuts ? cut(bytes, from, to, cuts) : bytes.subarray(from, to)];
          },
          deferred: NOTHING,
        },
        errors: NO_ERRORS,
        extensions,
        nullingPages: NO_PAGES,
        size: bytes.length,
      };
    },
    { kind: 'object', nullable: false, type: '', fields: answer },
  );
}

const ANYTHING: Shape = { kind: 'any', nullable: false, type: '' };

const DATA = Buffer.from('{"data":');
const EXTENSIONS = Buffer.from(',"extensions":');
const NO_ERRORS: readonly AnswerError[] = [];
const NOTHING: readonly never[] = [];

/** Reads an answer in general, whatever its form. */
export function readForwarded(
  answer: Json,
  fields: readonly ForwardedShape[],
  isQuery: boolean,
): ForwardedAnswer {
  const { data, errors, extensions } = readAnswer(answer);
  const nullingPages = isQuery ? nullingPagesOf(data, errors) : NO_PAGES;
  const size = answer.raw.length;
  const isNull = data === undefined || data.isNull;
  if (isNull && errors.length > 0) {
    return { data: data && null, errors: errors.map(asCallerSees), extensions, nullingPages, size };
  }
  const keys = new Set(fields.map(({ key }) => key));
  const unplaced = errors.filter(({ path }) => !path || !keys.has(String(path[0])));
  const found: AnswerError[] = unplaced.map(asCallerSees);
  // An error without a path may explain any null.
  const isExplained = unplaced.some(({ path }) => !path);
  let isWhole = true;
  const deferred: DeferredReading[][] = fields.map(() => []);
  const values = fields.map(({ key, shape }, field): readonly Part[] => {
    if (shape.kind === 'typename') return [JSON.stringify(shape.served)];
    const own = errors.flatMap((error) =>
      error.path && error.path[0] === key ? [{ ...error, path: error.path.slice(1) }] : [],
    );
    const value = data?.get(key);
    const reading = readValue(shape, value, own, isExplained);
    // As in graphql-js, nulls that propagate to the root have one error, and those of the service.
    const told = isWhole ? reading.errors : reading.errors.filter(isOfService);
    for (const error of told) found.push({ ...error, path: [key, ...(error.path ?? [])] });
    if (!reading.parts) isWhole = false;
    for (const one of reading.deferred) deferred[field]!.push({ ...one, path: [key, ...one.path] });
    return (reading.parts ?? []).map((part) =>
      typeof part === 'string' ? part : { ...part, path: [key, ...part.path] },
    );
  });
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
