import { GraphQLError } from 'graphql';
import { TooBig } from '../errors.ts';
import { notGraphQL } from '../upstream/read-answer.ts';
import type { UpstreamAnswer } from '../upstream/request.ts';
import type { AnswerError, Path, ServiceError } from './answer.ts';
import { isJsonObject, parseExactly, type JsonObject } from './json.ts';

/** What the service answered, parsed for one reader: nothing of it is shared. */
export interface ServiceAnswer {
  /** Undefined if the service did not execute the request. */
  readonly data: JsonObject | null | undefined;
  readonly errors: readonly ServiceError[];
  readonly extensions: JsonObject | undefined;
}

/** @throws UPSTREAM_BAD_RESPONSE if it is not a GraphQL answer */
export function readServiceAnswer({ text, status }: UpstreamAnswer): ServiceAnswer {
  let answer: unknown;
  try {
    answer = parseExactly(text);
  } catch {
    throw notGraphQL(status).error;
  }
  const { data, errors, extensions } = answer as JsonObject;
  if (data !== undefined && data !== null && !isJsonObject(data)) throw notGraphQL(status).error;
  return {
    data,
    errors: Array.isArray(errors) ? errors.map(serviceError) : [],
    extensions: isJsonObject(extensions) ? extensions : undefined,
  };
}

function serviceError(error: unknown): ServiceError {
  const { message, path, locations: _, ...members } = isJsonObject(error) ? error : {};
  // To plugins and Yoga it would mean the status and headers of the gateway's own response.
  if (isJsonObject(members['extensions'])) delete members['extensions']['http'];
  return {
    message: typeof message === 'string' ? message : 'The recruiting service reported an error.',
    ...(isPath(path) && { path }),
    ...members,
  };
}

function isPath(path: unknown): path is Path {
  return (
    Array.isArray(path) &&
    path.every((step) => typeof step === 'string' || typeof step === 'number')
  );
}

/** A value of an answer, with the errors at it and below it. Their paths begin at the value. */
export interface PlacedValue {
  readonly value: unknown;
  readonly errors: readonly PlacedError[];
}

interface PlacedError {
  readonly error: ServiceError;
  readonly path: Path;
}

/** Returns the value of a root field; an error without a place explains a null of any of them. */
export function rootValue({ data, errors }: ServiceAnswer, key: string): PlacedValue {
  const value = data?.[key];
  const placed = errors.flatMap((error) => {
    const { path = [] } = error;
    if (path[0] === key) return [{ error, path: path.slice(1) }];
    // It belongs to another field only if there is one.
    const isOfOther = typeof path[0] === 'string' && path[0] in (data ?? {});
    return isOfOther ? [] : [{ error, path: [] }];
  });
  return { value, errors: placed };
}

/** Returns a value inside of another one. Errors at the outer value explain a null of the inner one. */
export function valueBelow({ value, errors }: PlacedValue, key: string): PlacedValue {
  return {
    value: isJsonObject(value) ? value[key] : undefined,
    errors: errors.flatMap(({ error, path }) => {
      if (path.length === 0) return [{ error, path }];
      return path[0] === key ? [{ error, path: path.slice(1) }] : [];
    }),
  };
}

/** The service answered with errors instead of a value. They reach the caller as they are, at the place of the value. */
export class ServiceFailure extends GraphQLError {
  readonly errors: readonly ServiceError[];

  /** @param errors at least one */
  constructor(errors: readonly ServiceError[]) {
    const [{ message, extensions }] = errors as [ServiceError];
    super(message, { extensions: extensions as GraphQLError['extensions'] });
    this.errors = errors;
  }
}

/** Returns the errors of an answer for what was thrown while a value was made. @param path of the value */
export function errorsAt(thrown: unknown, path: Path): AnswerError[] {
  if (thrown instanceof ServiceFailure) {
    return thrown.errors.map((error) => ({ service: { ...error, path } }));
  }
  return [{ thrown, path }];
}

/** Whether the service refused a request because it asks for too much: fewer records may be accepted. */
export function isTooBig({ data, errors }: ServiceAnswer): boolean {
  if (data !== undefined && data !== null) return false;
  return errors.some(({ message, extensions }) => {
    const code = isJsonObject(extensions) ? extensions['code'] : undefined;
    return TOO_BIG.test(message.replaceAll(/https?:\S+/g, '')) || TOO_BIG.test(String(code));
  });
}

/** The GraphQL specification does not define how services say so; most name the complexity or the cost. */
const TOO_BIG = /complexity|(?:\b|_)costs?(?:\b|_)|too[ _](?:complex|expensive|large|big)\b/i;

/** Whether a request failed with status 413, or with an answer that is larger than the gateway reads. */
export function failedForSize(error: unknown): boolean {
  return error instanceof Error && error.cause instanceof TooBig;
}
