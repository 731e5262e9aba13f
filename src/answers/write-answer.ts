import { writeError, type AnswerError } from './errors.ts';

/** An answer, as far as it was read. */
export interface WholeAnswer {
  /** The members of `data`; undefined: it is null. */
  readonly data: readonly (string | Buffer)[] | undefined;
  readonly errors: readonly AnswerError[];
  /** Of the service's own answer, as they were written. */
  readonly extensions: string | undefined;
}

/** @param mask what every error goes through that the service did not send */
export function writeAnswer(
  { data, errors, extensions }: WholeAnswer,
  mask: (error: unknown) => Error,
): (string | Buffer)[] {
  const tail = errorsAndExtensions(errors, extensions, mask);
  if (!data) return [`{"data":null${tail}}`];
  return ['{"data":{', ...data, `}${tail}}`];
}

export function errorsAndExtensions(
  errors: readonly AnswerError[],
  extensions: string | undefined,
  mask: (error: unknown) => Error,
): string {
  const list = errors.map((error) => writeError(error, mask)).join(',');
  return `${list === '' ? '' : `,"errors":[${list}]`}${extensions === undefined ? '' : `,"extensions":${extensions}`}`;
}

/** The code of the first error, for telemetry. */
export function codeOfAnswer([first]: readonly AnswerError[], mask: (error: unknown) => Error): unknown {
  if (!first) return undefined;
  if (!('thrown' in first)) return first.code ?? 'OTHER';
  const masked = mask(first.thrown) as { extensions?: { code?: unknown } };
  return masked.extensions?.code;
}
