import { writeErrors, type AnswerError, type Path } from './errors.ts';

/** What is sent to the caller at a time, as the proposal of 2022-08-24 has it. */
export interface Payload {
  readonly first?: GivenPart | undefined;
  readonly incremental?: readonly Increment[] | undefined;
  readonly hasNext: boolean;
}

export interface GivenPart {
  /** The members of an object, or the elements of a list. */
  readonly parts: readonly (string | Buffer)[] | null | undefined;
  readonly errors: readonly AnswerError[];
  /** Of the service's own answer, as they were written. */
  readonly extensions?: string | undefined;
}

export interface Increment extends GivenPart {
  readonly kind: 'items' | 'data';
  /** Of items it ends with the place of the first one in the whole list. */
  readonly path: Path;
  readonly label: string | undefined;
}

/**
 * @param mask what every error goes through that the service did not send
 * @param isOnly then it is a whole answer
 */
export function writePayload(
  { first, incremental, hasNext }: Payload,
  mask: (error: unknown) => Error,
  isOnly = false,
): (string | Buffer)[] {
  const text: (string | Buffer)[] = ['{'];
  if (first) {
    text.push('"data":', ...inBrackets('{', first.parts, '}'), tailOf(first, mask));
    if (first.extensions !== undefined) text.push(`,"extensions":${first.extensions}`);
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

function tailOf({ errors }: GivenPart, mask: (error: unknown) => Error): string {
  return errors.length > 0 ? `,"errors":${writeErrors(errors, mask)}` : '';
}

function inBrackets(
  open: string,
  parts: readonly (string | Buffer)[] | null | undefined,
  close: string,
): readonly (string | Buffer)[] {
  return parts ? [open, ...parts, close] : ['null'];
}
