import { GraphQLError } from 'graphql';
import { TooBig } from '../errors.ts';
import { causeOf } from '../paging/page.ts';
import { notGraphQL } from '../upstream/read-answer.ts';
import type { UpstreamAnswer } from '../upstream/request.ts';
import type { ErrorOfService, FieldValue, Path, ServiceError } from './answer.ts';
import { isJsonObject, parseExactly, type JsonObject } from './json.ts';

/** What the service answered, parsed for one reader: nothing of it is shared. */
export interface ServiceAnswer {
  /** Undefined if the service did not execute the request. */
  readonly data: JsonObject | null | undefined;
  readonly errors: readonly ErrorOfService[];
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

function serviceError(error: unknown): ErrorOfService {
  const { message, path, locations: _, ...members } = isJsonObject(error) ? error : {};
  // To plugins and Yoga it would mean the status and headers of the gateway's own response.
  if (isJsonObject(members['extensions'])) delete members['extensions']['http'];
  const text = typeof message === 'string' ? message : 'The recruiting service reported an error.';
  return {
    service: { message: text, ...members },
    path: Array.isArray(path) ? (path as Path) : undefined,
  };
}

/** A value of an answer, with the errors at it and below it. Their paths begin at the value. */
export interface PlacedValue {
  readonly value: unknown;
  readonly errors: readonly ErrorOfService[];
}

/** Returns a member of a value. Errors at the value itself, or without a place, explain a null of any member. */
export function memberOf({ value, errors }: PlacedValue, key: string): PlacedValue {
  const members = isJsonObject(value) ? value : {};
  return {
    value: members[key],
    errors: errors.flatMap(({ service, path }) => {
      if (!path || path.length === 0) return [{ service, path }];
      const [first, ...rest] = path;
      if (first === key) return [{ service, path: rest }];
      // It belongs to another member only if there is one.
      return (first as string) in members ? [] : [{ service, path: [] }];
    }),
  };
}

/** Returns the data of an answer. @throws ServiceFailure if the service did not execute the request */
export function dataOf({ data, errors }: ServiceAnswer): PlacedValue {
  if (data === undefined) throw new ServiceFailure(errors.map(({ service }) => service));
  return { value: data, errors };
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

/** Returns the value of a field for what was thrown when it was read. */
export function failed(thrown: unknown): FieldValue {
  const cause = causeOf(thrown);
  const errors = cause instanceof ServiceFailure ? cause.errors : undefined;
  return {
    value: null,
    errors: errors?.map((service) => ({ service, path: [] })) ?? [{ thrown: cause, path: [] }],
  };
}

/** Whether the service refused a request because it asks for too much: fewer records may be accepted. */
export function isTooBig({ data, errors }: ServiceAnswer): boolean {
  if (data !== undefined && data !== null) return false;
  return errors.some(({ service: { message, extensions } }) => {
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
