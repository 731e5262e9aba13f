import { writeErrors, type AnswerError } from './answer-errors.ts';

/** The answer to an operation, ready to be written. */
export interface WholeAnswer {
  /** The members of `data`, or null; undefined if there is no `data`, since the service did not execute the request. */
  readonly data: readonly (string | Buffer)[] | null | undefined;
  readonly errors: readonly AnswerError[];
  /** The `extensions` of the service's answer, as they were written. */
  readonly extensions: string | undefined;
}

/**
 * @param mask as in writeError
 * @param further members of the answer, each after a comma
 */
export function writeAnswer(
  { data, errors, extensions }: WholeAnswer,
  mask: (error: unknown) => Error,
  further = '',
): (string | Buffer)[] {
  const list = errors.length > 0 ? `,"errors":${writeErrors(errors, mask)}` : '';
  const tail = `${list}${extensions === undefined ? '' : `,"extensions":${extensions}`}${further}`;
  if (data === undefined) return [`{${tail.slice(1)}}`];
  if (data === null) return [`{"data":null${tail}}`];
  const all: (string | Buffer)[] = ['{"data":{'];
  for (const part of data) all.push(part);
  all.push(`}${tail}}`);
  return all;
}
