import { setImmediate as nextTurn } from 'node:timers/promises';
import { GraphQLError, type ExecutionResult } from 'graphql';
import { isJsonObject, parseExactly } from './json.ts';

export type Path = readonly (string | number)[];

/** An error of the service: all members of the JSON object, except for its path and locations. */
export interface ServiceError {
  readonly message: string;
  readonly [member: string]: unknown;
}

/** An error of an answer, or of a value in it: then its path begins at the value. */
export type AnswerError = ErrorOfService | ErrorOfGateway;

export interface ErrorOfService {
  readonly service: ServiceError;
  /** Undefined: the service said nothing about the place. */
  readonly path: Path | undefined;
}

interface ErrorOfGateway {
  /** It is masked when it is written. */
  readonly thrown: unknown;
  /** Undefined: that of the error itself. */
  readonly path: Path | undefined;
}

/** Returns the errors of a value as those of what has the value at this path. */
export function errorsBelow(path: Path, errors: readonly AnswerError[]): AnswerError[] {
  return errors.map((error) => ({ ...error, path: [...path, ...(error.path ?? [])] }));
}

/**
 * A value of which only the JSON is known. Answers share it, since nobody can change it, and a list of 100,000 records
 * is never in memory as a tree of objects.
 */
export class JsonText {
  /** The value is what they say in a row. Bytes are elements of a list. */
  readonly pieces: readonly Piece[];

  constructor(pieces: readonly Piece[]) {
    this.pieces = pieces;
  }

  /** @param parts some elements each, with commas between them; none is empty */
  static ofList(parts: readonly Buffer[]): JsonText {
    const separated = parts.flatMap((part, at) => (at === 0 ? [part] : [',', part]));
    return new JsonText(['[', ...separated, ']']);
  }

  /** Makes the value, a part of a list in each turn of the event loop: others get theirs in between. */
  async parse(): Promise<unknown> {
    const [text] = this.pieces;
    if (this.pieces.length === 1) return parseExactly(text as string);
    const elements: unknown[] = [];
    const parts = this.pieces.filter((piece) => typeof piece !== 'string');
    for (const part of parts) {
      for (const element of parseExactly(`[${String(part)}]`) as unknown[]) elements.push(element);
      if (parts.length > 1) await nextTurn();
    }
    return elements;
  }
}

export type Piece = string | Buffer;

/**
 * The answer to an operation. It belongs to one caller, except for the texts in it. Its members may be made when they are
 * read, so it cannot be copied by spreading.
 */
export interface Answer {
  /**
   * Of the root fields in the order of the operation, each a `JsonText` or a value as JSON. Undefined if the operation
   * was not executed.
   */
  readonly data: Readonly<Record<string, unknown>> | null | undefined;
  readonly errors: readonly AnswerError[];
  /** Those of the service. */
  readonly extensions?: Readonly<Record<string, unknown>> | undefined;
  /** The JSON of the whole answer, if it is exactly what the service wrote. */
  readonly bytes?: Buffer | undefined;
}

/** The value of a field that the gateway answers. */
export interface FieldValue {
  /** Null also where it could not be read. */
  readonly value: JsonText | null;
  /** Their paths begin at the field. */
  readonly errors: readonly AnswerError[];
}

/** Returns an error as its caller sees it. */
export type ShowError = (error: AnswerError) => object;

/** Writes an answer as JSON. @param further members of the answer, each after a comma */
export function writeAnswer(answer: Answer, show: ShowError, further = ''): Piece[] {
  if (answer.bytes && further === '') return [answer.bytes];
  // Not before: to read the values of bytes is to parse them.
  const { data, errors, extensions } = answer;
  const list = errors.length > 0 ? `,"errors":${JSON.stringify(errors.map(show))}` : '';
  const rest = `${list}${extensions ? `,"extensions":${JSON.stringify(extensions)}` : ''}${further}}`;
  if (data === undefined) return [`{${rest.slice(1)}`];
  if (data === null) return [`{"data":null${rest}`];
  const pieces: Piece[] = [];
  let text = '{"data":{';
  let separator = '';
  for (const [key, value] of Object.entries(data)) {
    text += `${separator}"${key}":`;
    separator = ',';
    // Of what JSON does not have, such as a symbol that a resolver returned, it makes nothing.
    if (!(value instanceof JsonText))
      text += (JSON.stringify(value) as string | undefined) ?? 'null';
    else {
      for (const piece of value.pieces) {
        // Small texts are joined: each piece has its cost.
        if (typeof piece === 'string') text += piece;
        else {
          pieces.push(text, piece);
          text = '';
        }
      }
    }
  }
  pieces.push(`${text}}${rest}`);
  return pieces;
}

/**
 * Makes the result of an answer: values that plugins and graphql-js may read and change, and errors that are not masked
 * yet. It is made page by page of a list, so that others get their turn in between.
 */
export async function resultOf({ data, errors, extensions }: Answer): Promise<ExecutionResult> {
  const values: Record<string, unknown> | null | undefined = data && {};
  for (const [key, value] of Object.entries(data ?? {})) {
    values![key] = value instanceof JsonText ? await value.parse() : value;
  }
  return {
    ...(values !== undefined && { data: values }),
    ...(errors.length > 0 && { errors: errors.map(graphqlErrorOf) }),
    ...(extensions && { extensions: { ...extensions } }),
  };
}

/** Makes a fresh error, since plugins may write into it. */
function graphqlErrorOf(error: AnswerError): GraphQLError {
  if ('service' in error) return new ServiceGraphQLError(error);
  const { thrown } = error;
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  const original = thrown instanceof GraphQLError ? thrown : new GraphQLError(text);
  return new GraphQLError(original.message, {
    nodes: original.nodes ?? null,
    source: original.source ?? null,
    positions: original.positions ?? null,
    path: error.path ?? original.path ?? null,
    originalError: thrown as Error,
    extensions: { ...original.extensions },
  });
}

/** An error of the service, with all its members. */
class ServiceGraphQLError extends GraphQLError {
  readonly #members: Readonly<Record<string, unknown>>;

  constructor({ service: { message, extensions, ...members }, path }: ErrorOfService) {
    super(message, { path: path ?? null, ...(isJsonObject(extensions) && { extensions }) });
    this.#members = members;
  }

  override toJSON() {
    return { ...super.toJSON(), ...this.#members };
  }
}
