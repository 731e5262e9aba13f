import { GraphQLError, type ExecutionResult, type GraphQLFormattedError } from 'graphql';
import { codedError } from '../errors.ts';

/** Of one answer: to make, copy and place each of them takes a tenth of a millisecond, in which all others wait. */
const MAX_ERRORS = 3_000;

/** What a JSON document says as an answer of GraphQL; undefined when it is none. */
export function readResult(document: unknown): ExecutionResult | undefined {
  if (!isObject(document)) return undefined;
  const { data, errors, extensions } = document;
  if (data !== undefined && data !== null && !isObject(data)) return undefined;
  if (errors !== undefined && errors !== null && !Array.isArray(errors)) return undefined;
  const read = readErrors(errors ?? [], data);
  if (data === undefined && read.length === 0) return undefined;
  return {
    ...(data !== undefined && { data }),
    ...(read.length > 0 && { errors: read }),
    ...(isObject(extensions) && { extensions }),
  };
}

function readErrors(errors: readonly unknown[], data: unknown): GraphQLError[] {
  const read = errors.slice(0, MAX_ERRORS).map((error) => toError(error, data));
  return errors.length <= MAX_ERRORS ? read : [...read, furtherErrors(errors.length - MAX_ERRORS)];
}

function furtherErrors(count: number): GraphQLError {
  return codedError(
    'UPSTREAM_BAD_RESPONSE',
    `The recruiting service reported ${count} errors more, which are left out. Ask for less at a time.`,
  );
}

function toError(error: unknown, data: unknown): GraphQLError {
  const { message, path, extensions } = (isObject(error) ? error : {}) as Partial<
    Record<keyof GraphQLFormattedError, unknown>
  >;
  // Locations are dropped: they point into the document that we sent, not into the caller's.
  return new GraphQLError(
    typeof message === 'string' ? message : 'The recruiting service reported an error.',
    {
      ...(isPath(path) && leadsSomewhere(path, data) && { path }),
      ...(isObject(extensions) && { extensions: withoutOurs(extensions) }),
    },
  );
}

/** What our own server reads of an error's extensions: the service shall not set our status and headers. */
function withoutOurs(extensions: Record<string, unknown>): Record<string, unknown> {
  const { http: _, unexpected: __, originalError: ___, ...others } = extensions;
  return others;
}

function isPath(path: unknown): path is (string | number)[] {
  return (
    Array.isArray(path) &&
    path.every((key) => typeof key === 'string' || (Number.isInteger(key) && key >= 0))
  );
}

/**
 * Whether there is a place for the error in the data. Errors are put at their places later: one behind the
 * end of a list would make the list longer, and one at `__proto__` would change every object there is.
 */
function leadsSomewhere(path: readonly (string | number)[], data: unknown): boolean {
  if (path.includes('__proto__')) return false;
  let value: unknown = data ?? null;
  for (const key of path) {
    // The null may have come up from deeper inside.
    if (value === null) return true;
    if (typeof value !== 'object' || !Object.hasOwn(value, key)) return false;
    if (Array.isArray(value) && typeof key !== 'number') return false;
    value = (value as Record<string | number, unknown>)[key];
  }
  return true;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
