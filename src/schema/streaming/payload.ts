import { GraphQLError, type ExecutionResult } from 'graphql';
import type { ResponsePath } from '../asking/response-path.ts';

/** What is sent to the caller at a time, as the proposal of 2022-08-24 has it. */
export type StreamPayload = ExecutionResult & {
  readonly hasNext: boolean;
  readonly incremental?: readonly Increment[];
};

export interface Increment {
  /** Of a stream; null: there are no further ones, since something is wrong. */
  readonly items?: readonly unknown[] | null;
  /** Of what was put off. */
  readonly data?: unknown;
  /** Of a stream it ends with the place of the first item in the whole list. */
  readonly path: ResponsePath;
  readonly label?: string;
  readonly errors?: readonly GraphQLError[];
}

/** What a payload has at a place of the answer: undefined when it says nothing about that. */
export function givenAt(
  place: ResponsePath,
  { path, data }: Pick<Increment, 'path' | 'data'>,
): unknown {
  if (!path.every((key, depth) => key === place[depth])) return undefined;
  let value: unknown = data ?? null;
  for (const key of place.slice(path.length)) {
    if (value === null) return null;
    value = (value as Record<string | number, unknown>)[key];
    if (value === undefined) return undefined;
  }
  return value;
}

/**
 * A part of a list is executed like a list of its own, whose places are counted from 0.
 *
 * @param list where the whole list is in the answer
 * @param before how many records of it came before
 */
export function inWholeList(increment: Increment, list: ResponsePath, before: number): Increment {
  const { path, errors } = increment;
  return {
    ...increment,
    path: shifted(path, list, before),
    ...(errors && { errors: errors.map((error) => shiftedError(error, list, before)) }),
  };
}

export function shiftedError(
  error: GraphQLError,
  list: ResponsePath,
  before: number,
): GraphQLError {
  if (!error.path) return error;
  const { message, nodes, extensions, originalError } = error;
  return new GraphQLError(message, {
    nodes: nodes ?? null,
    path: shifted(error.path, list, before),
    extensions,
    originalError: originalError ?? null,
  });
}

function shifted(path: ResponsePath, list: ResponsePath, before: number): ResponsePath {
  const place = path[list.length];
  return typeof place === 'number' ? path.with(list.length, place + before) : path;
}
