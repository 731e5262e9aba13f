import { writeErrors, type AnswerError, type Mask, type Path } from './answer-errors.ts';

/** The answer to an operation, ready to be written. */
export interface WholeAnswer {
  /** The members of `data`, or null; undefined if there is no `data`, since the service did not execute the request. */
  readonly data: readonly (string | Buffer)[] | null | undefined;
  readonly errors: readonly AnswerError[];
  /** The `extensions` of the service's answer, as they were written. */
  readonly extensions: string | undefined;
}

/** Writes a whole answer as JSON. @param further members of the answer, each after a comma */
export function writeAnswer(
  { data, errors, extensions }: WholeAnswer,
  mask: Mask,
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

/**
 * A format of incremental delivery, under the name that clients use: the proposal of 2022-08-24, which places each
 * increment by its path, or the format of graphql-js 17, which announces each part with an id and reports its end.
 */
export type IncrementalFormat = '20220824' | 'v0.2';

/** One payload of an answer in parts. */
export interface Payload {
  /** Set in the first payload. */
  readonly first?: WholeAnswer | undefined;
  /** The parts that are announced: their place in the answer is in this payload or an earlier one. */
  readonly pending?: readonly PendingPart[];
  readonly incremental?: readonly Increment[];
  /** The lists whose last elements were in an earlier payload. */
  readonly ended?: readonly PendingPart[];
  readonly hasNext: boolean;
}

/** A part of the answer that is sent later: the further elements of a list, or the fields under a `@defer`. */
export interface PendingPart {
  /** Unique in the answer. */
  readonly id: string;
  readonly path: Path;
  readonly label: string | undefined;
  /** The index of the first element that is sent later; undefined for fields under a `@defer`. */
  readonly from: number | undefined;
}

export interface Increment {
  readonly of: PendingPart;
  /** The index of the first element in the list, and the number of elements. */
  readonly index?: number | undefined;
  readonly count?: number;
  /** The elements of the list or the members of the object; undefined if an error ends the part. */
  readonly parts: readonly (string | Buffer)[] | undefined;
  readonly errors: readonly AnswerError[];
  /** JSON. */
  readonly extensions?: string | undefined;
}

/**
 * Writes a payload as JSON. A first payload without a next one is the whole answer, in every format.
 *
 * @returns undefined for a payload that means nothing in this format
 */
export function writePayload(
  payload: Payload,
  format: IncrementalFormat,
  mask: Mask,
): (string | Buffer)[] | undefined {
  const { first, hasNext } = payload;
  const lists = payloadLists(payload, format);
  if (first) {
    const announced = lists.map((list) => `,"${list.name}":${writeEntries(list, mask).join('')}`);
    return writeAnswer(first, mask, hasNext ? `${announced.join('')},"hasNext":true` : '');
  }
  if (lists.length === 0 && hasNext) return undefined;
  const text: (string | Buffer)[] = ['{'];
  for (const list of lists) {
    text.push(`"${list.name}":`);
    for (const piece of writeEntries(list, mask)) text.push(piece);
    text.push(',');
  }
  text.push(`"hasNext":${hasNext}}`);
  return text;
}

/** The parts that were announced to the caller and have not ended. */
export class OpenParts {
  /** By their ids. The index is that of the next element. */
  readonly #parts = new Map<
    string,
    { readonly of: PendingPart; readonly index: number | undefined }
  >();

  /** Call it with each payload that is sent. */
  sent({ pending = [], incremental = [], ended = [] }: Payload): void {
    for (const of of pending) this.#parts.set(of.id, { of, index: of.from });
    for (const increment of incremental) {
      const { of, index = 0, count = 0 } = increment;
      if (isLast(increment)) this.#parts.delete(of.id);
      else this.#parts.set(of.id, { of, index: index + count });
    }
    for (const { id } of ended) this.#parts.delete(id);
  }

  /** The last payload of an answer that cannot go on: it ends each part with the error. */
  failed(error: AnswerError): Payload {
    const incremental = Array.from(this.#parts.values(), (part) => ({
      ...part,
      parts: undefined,
      errors: [error],
    }));
    return { incremental, hasNext: false };
  }
}

/** A list of a payload that is not empty, such as `incremental`. */
export interface PayloadList {
  readonly name: 'incremental' | 'pending' | 'completed';
  readonly entries: readonly PayloadEntry[];
}

export interface PayloadEntry {
  /** The value that the entry sends; undefined for an entry that only reports something about a part. */
  readonly value?: { readonly name: 'data' | 'items'; readonly json: Pieces } | undefined;
  /** Its other members, as JSON, without its errors and extensions. */
  readonly about: string;
  readonly errors: readonly AnswerError[];
  /** JSON. */
  readonly extensions: string | undefined;
}

type Pieces = readonly (string | Buffer)[];

/** The lists that a payload has in a format. */
export function payloadLists(payload: Payload, format: IncrementalFormat): readonly PayloadList[] {
  const lists = format === 'v0.2' ? listsById(payload) : listsByPath(payload);
  return lists.filter(({ entries }) => entries.length > 0);
}

function listsByPath({ incremental = [] }: Payload): readonly PayloadList[] {
  const entries = incremental.map((increment) => {
    const { of, index } = increment;
    const path = JSON.stringify(index === undefined ? of.path : [...of.path, index]);
    return entryOf(`"path":${path}${labelOf(of)}`, increment);
  });
  return [{ name: 'incremental', entries }];
}

function listsById({
  pending = [],
  incremental = [],
  ended = [],
}: Payload): readonly PayloadList[] {
  const announced = pending.map((part) =>
    aboutPart(part, `,"path":${JSON.stringify(part.path)}${labelOf(part)}`),
  );
  const increments = incremental.flatMap((increment) => {
    const { of, parts } = increment;
    return parts ? [entryOf(`"id":"${of.id}"`, increment)] : [];
  });
  const completed = incremental.flatMap((increment) => {
    const { of, parts, errors, extensions } = increment;
    if (!parts) return [{ ...aboutPart(of), errors, extensions }];
    return isLast(increment) ? [aboutPart(of)] : [];
  });
  return [
    { name: 'pending', entries: announced },
    { name: 'incremental', entries: increments },
    { name: 'completed', entries: [...completed, ...ended.map((part) => aboutPart(part))] },
  ];
}

function aboutPart({ id }: PendingPart, more = ''): PayloadEntry {
  return { about: `"id":"${id}"${more}`, errors: [], extensions: undefined };
}

function entryOf(about: string, increment: Increment): PayloadEntry {
  const { errors, extensions } = increment;
  return { value: valueOf(increment), about, errors, extensions };
}

/** Writes the entries of a list as a JSON list. */
export function writeEntries({ entries }: PayloadList, mask: Mask): (string | Buffer)[] {
  const text: (string | Buffer)[] = [];
  for (const { value, about, errors, extensions } of entries) {
    const start = text.length === 0 ? '[{' : ',{';
    if (value) {
      text.push(`${start}"${value.name}":`);
      for (const piece of value.json) text.push(piece);
    }
    const list = errors.length > 0 ? `,"errors":${writeErrors(errors, mask)}` : '';
    const end = extensions === undefined ? list : `${list},"extensions":${extensions}`;
    text.push(`${value ? ',' : start}${about}${end}}`);
  }
  text.push(']');
  return text;
}

function valueOf({ of: { from }, parts }: Increment): NonNullable<PayloadEntry['value']> {
  const name = from === undefined ? 'data' : 'items';
  if (!parts) return { name, json: ['null'] };
  const [open, close] = name === 'items' ? ['[', ']'] : ['{', '}'];
  return { name, json: [open, ...parts, close] };
}

/** Whether nothing more is sent of its part. */
function isLast({ of, parts }: Increment): boolean {
  return of.from === undefined || !parts;
}

function labelOf({ label }: PendingPart): string {
  return label === undefined ? '' : `,"label":${JSON.stringify(label)}`;
}
