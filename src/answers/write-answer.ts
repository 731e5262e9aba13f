import { writeErrors, type AnswerError } from './errors.ts';

/** An answer, as far as it was read. */
export interface WholeAnswer {
  /** The members of `data`, or null; undefined: there is none, since the service did not even begin. */
  readonly data: readonly (string | Buffer)[] | null | undefined;
  readonly errors: readonly AnswerError[];
  /** Of the service's own answer, as they were written. */
  readonly extensions: string | undefined;
}

/** @param mask what every error goes through that the service did not send */
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
