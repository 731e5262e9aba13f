import { writeErrors, type AnswerError, type Path } from './answer-errors.ts';

/** The answer to an operation, ready to be written. */
export interface WholeAnswer {
  /** The members of `data`, or null; undefined if there is no `data`, since the service did not execute the request. */
  readonly data: readonly (string | Buffer)[] | null | undefined;
  readonly errors: readonly AnswerError[];
  /** The `extensions` of the service's answer, as they were written. */
  readonly extensions: string | undefined;
}

/** @param mask as in writeError */
export function writeAnswer(
  { data, errors, extensions }: WholeAnswer,
  mask: (error: unknown) => Error,
): (string | Buffer)[] {
  const list = errors.length > 0 ? `,"errors":${writeErrors(errors, mask)}` : '';
  const tail = `${list}${extensions === undefined ? '' : `,"extensions":${extensions}`}`;
  if (data === undefined) return [`{${tail.slice(1)}}`];
  if (data === null) return [`{"data":null${tail}}`];
  const all: (string | Buffer)[] = ['{"data":{'];
  for (const part of data) all.push(part);
  all.push(`}${tail}}`);
  return all;
}

/** One payload of an answer in parts (incremental delivery, proposal of 2022-08-24). */
export interface Payload {
  readonly first?: AnswerPart | undefined;
  readonly incremental?: readonly Increment[] | undefined;
  readonly hasNext: boolean;
}

export interface AnswerPart {
  /** The members of an object, or the elements of a list. */
  readonly parts: readonly (string | Buffer)[] | null | undefined;
  readonly errors: readonly AnswerError[];
  /** JSON: the `extensions` of the service's answer, as they were written, or those of an increment. */
  readonly extensions?: string | undefined;
}

export interface Increment extends AnswerPart {
  readonly kind: 'items' | 'data';
  /** For items it ends with the index of the first item in the list. */
  readonly path: Path;
  readonly label: string | undefined;
}

/**
 * @param mask as in writeError
 * @param isOnly whether this payload is the whole answer
 */
export function writePayload(
  { first, incremental, hasNext }: Payload,
  mask: (error: unknown) => Error,
  isOnly = false,
): (string | Buffer)[] {
  const text: (string | Buffer)[] = ['{'];
  if (first) {
    text.push('"data":', ...inBrackets('{', first.parts, '}'), tailOf(first, mask));
  }
  if (incremental) {
    text.push('"incremental":[');
    for (const [i, one] of incremental.entries()) {
      const [open, close] = one.kind === 'items' ? ['[', ']'] : ['{', '}'];
      text.push(`${i > 0 ? ',' : ''}{"${one.kind}":`, ...inBrackets(open, one.parts, close));
      text.push(`,"path":${JSON.stringify(one.path)}`);
      if (one.label !== undefined) text.push(`,"label":${JSON.stringify(one.label)}`);
      text.push(`${tailOf(one, mask)}}`);
    }
    text.push(']');
  }
  if (!isOnly) text.push(`${text.length > 1 ? ',' : ''}"hasNext":${hasNext}`);
  text.push('}');
  return text;
}

function tailOf({ errors, extensions }: AnswerPart, mask: (error: unknown) => Error): string {
  const list = errors.length > 0 ? `,"errors":${writeErrors(errors, mask)}` : '';
  return extensions === undefined ? list : `${list},"extensions":${extensions}`;
}

function inBrackets(
  open: string,
  parts: readonly (string | Buffer)[] | null | undefined,
  close: string,
): readonly (string | Buffer)[] {
  return parts ? [open, ...parts, close] : ['null'];
}
