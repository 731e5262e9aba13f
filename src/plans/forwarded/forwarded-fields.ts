import { OperationTypeNode, type SelectionNode } from 'graphql';
import { callerPath, type AnswerError, type UpstreamError } from '../../answers/errors.ts';
import { readValue, type DeferredReading } from '../../answers/read.ts';
import { scanInAnyForm } from '../../answers/scan-any-form.ts';
import { matches } from '../../answers/scan-leaf.ts';
import { scanner } from '../../answers/scan.ts';
import { readAnswer } from '../../answers/service-answer.ts';
import type { FieldShape, ObjectShape, Shape, TypenameShape } from '../../answers/shape.ts';
import { createTape, cut, resetTape } from '../../answers/tape.ts';
import type { Json } from '../../json.ts';
import type { CallVariables, UpstreamRequest } from '../call.ts';
import type { Part } from '../output.ts';
import {
  NOBODY,
  parentsTakenAlong,
  writeRequest,
  type RequestWriter,
  type WantedPages,
  type WrittenOperation,
} from '../requests/request-text.ts';

/** The fields of the root that the service has itself: asked for in one request, as the caller wrote them. */
export interface ForwardedFields {
  request(variables: CallVariables, wanted?: WantedPages): UpstreamRequest<ForwardedAnswer>;
}

/** What the service answered. It may be shared with others who asked for the same. */
export interface ForwardedAnswer {
  /** Null where a null went all the way up; undefined: the service did not even begin. */
  readonly data: ForwardedData | null | undefined;
  /** As the service reported them, and what the types do not allow. */
  readonly errors: readonly AnswerError[];
  /** Of the answer itself, as they were written. */
  readonly extensions: string | undefined;
  readonly takenAlong: ReadonlySet<string>;
  /** Bytes. */
  readonly size: number;
}

export interface ForwardedData {
  /** All of them, with their keys. */
  readonly whole: readonly Part[];
  /** The value of one of them. */
  readonly valueOf: (field: number) => readonly Part[];
  /** What comes later, by the fields that it is in. */
  readonly deferred: readonly (readonly DeferredReading[])[];
}

export interface ForwardedParts {
  readonly writer: RequestWriter;
  readonly operation: WrittenOperation;
  /** What is sent: with the caller's fragments and directives. */
  readonly selections: readonly SelectionNode[];
  /** What is expected, in the order of the answer. */
  readonly fields: readonly ForwardedShape[];
}

export type ForwardedShape = FieldShape & { readonly shape: Shape | TypenameShape };

export function forwardedFields({
  writer,
  operation,
  selections,
  fields,
}: ForwardedParts): ForwardedFields {
  const isQuery = operation.operation === OperationTypeNode.QUERY;
  const write = (wanted: WantedPages) => writeRequest(writer, operation, selections, wanted);
  // A mutation cannot be sent again without the pages that failed.
  const whole = write(isQuery ? 'all' : 'safe');
  const scan = answerScanner(fields);
  const read = (answer: Json) => readForwarded(answer, fields, isQuery);
  return {
    request: (variables, wanted = 'all') => {
      const written = wanted === 'all' || !isQuery ? whole : write(wanted);
      return {
        kind: isQuery ? 'query' : 'mutation',
        field: written.field,
        body: written.body(variables),
        key: written.key(variables),
        pages: written.pages(variables),
        scan,
        read,
      };
    },
  };
}

/** Takes an answer that is as it was promised: it goes on as the bytes that it was. */
function answerScanner(
  fields: ForwardedParts['fields'],
): (bytes: Buffer) => ForwardedAnswer | undefined {
  const data: ObjectShape = { kind: 'object', nullable: false, type: '', fields };
  const scan = scanner(data, { noted: fields });
  const scanExtensions = scanner(ANYTHING);
  const tape = createTape();
  const answer = [
    { key: 'data', shape: data, isSilent: false },
    { key: 'extensions', shape: ANYTHING, isSilent: false },
  ];
  return scanInAnyForm(
    (bytes) => {
      if (!matches(bytes, 0, DATA)) return undefined;
      resetTape(tape);
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
      // Where one is asked for alone, it may have been cut; what was cut is not kept.
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
        takenAlong: NOBODY,
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

function readForwarded(
  answer: Json,
  fields: ForwardedParts['fields'],
  isQuery: boolean,
): ForwardedAnswer {
  const { data, errors, extensions } = readAnswer(answer);
  const takenAlong = isQuery ? parentsTakenAlong(data, errors) : NOBODY;
  const size = answer.raw.length;
  const isNull = data === undefined || data.isNull;
  if (isNull && errors.length > 0) {
    return { data: data && null, errors: errors.map(asCallerSees), extensions, takenAlong, size };
  }
  const keys = new Set(fields.map(({ key }) => key));
  const elsewhere = errors.filter(({ path }) => !path || !keys.has(String(path[0])));
  const found: AnswerError[] = elsewhere.map(asCallerSees);
  // An error that has no place may be why anything is null.
  const unplaced = elsewhere.some(({ path }) => !path);
  let isWhole = true;
  const deferred: DeferredReading[][] = fields.map(() => []);
  const values = fields.map(({ key, shape }, field): readonly Part[] => {
    if (shape.kind === 'typename') return [JSON.stringify(shape.served)];
    const own = errors.flatMap((error) =>
      error.path && error.path[0] === key ? [{ ...error, path: error.path.slice(1) }] : [],
    );
    const value = data?.get(key);
    const reading = readValue(shape, value, own, unplaced);
    for (const error of reading.errors)
      found.push({ ...error, path: [key, ...(error.path ?? [])] });
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
    takenAlong,
    size,
  };
}

/** In the order in which the service reported them, and behind those what the types do not allow. */
function orderOf(error: AnswerError): number {
  return 'thrown' in error ? Number.MAX_SAFE_INTEGER : error.order;
}

function asCallerSees(error: UpstreamError): AnswerError {
  return error.path ? { ...error, path: callerPath(error.path) } : error;
}
