import { GraphQLError } from 'graphql';
import type { ResponsePath } from './response-path.ts';
import { callerPath, errorsBeside, stepsToRide } from './ride-names.ts';

/** What the upstream answered for one value, its errors set apart. */
export interface UpstreamValue {
  readonly value: unknown;
  readonly errors: readonly UpstreamError[];
}

export interface UpstreamError {
  /** Begins at the value. */
  readonly path: ResponsePath;
  /** Where in the scalar that the path leads to. */
  readonly inside?: ResponsePath;
  readonly message: string;
  readonly extensions: Record<string, unknown>;
}

/**
 * Puts the errors in place of the nulls that they caused, for a value that callers see at `path`. A null
 * may have come up from deeper inside; the error's own path still tells where.
 *
 * @param surplus takes the errors that have no place of their own: a second one for one null, or one
 *   beside a value that is there
 */
export function valueAt(
  { value, errors }: UpstreamValue,
  path: ResponsePath,
  surplus: GraphQLError[],
): unknown {
  // A copy: the answer may be shared with another place of the operation, where other paths hold.
  const root = { value: errors.length > 0 ? structuredClone(value) : value };
  for (const error of errors) {
    if (goesBesideRide(root.value, error)) continue;
    const [holder, key] = standingPlace(root, error.path);
    const located = new GraphQLError(error.message, {
      path: [...path, ...callerPath(error.path), ...(error.inside ?? [])],
      extensions: error.extensions,
    });
    if (holder[key] === null || holder[key] === undefined) holder[key] = located;
    else surplus.push(located);
  }
  return root.value;
}

/** For the list of surplus errors, what stands at no place inside the value at `path`. */
export function errorsAt(path: ResponsePath, errors: readonly unknown[]): GraphQLError[] {
  return (errors as readonly UpstreamError[]).map(
    ({ message, extensions }) => new GraphQLError(message, { extensions, path }),
  );
}

/** What is wrong with a ridden page is put down beside it, for the field that it belongs to. */
function goesBesideRide(value: unknown, error: UpstreamError): boolean {
  const steps = stepsToRide(error.path);
  if (steps === 0) return false;
  let holder = value;
  for (const step of error.path.slice(0, steps - 1)) {
    holder = (holder as Record<string, unknown> | null | undefined)?.[step];
  }
  if (typeof holder !== 'object' || holder === null || holder instanceof Error) return false;
  const beside = errorsBeside(String(error.path[steps - 1]));
  const there = holder as Record<string, UpstreamError[] | undefined>;
  there[beside] = [...(there[beside] ?? []), { ...error, path: error.path.slice(steps) }];
  return true;
}

type Holder = Record<string | number, unknown>;

/** Follows the path as far as there is something to follow. */
function standingPlace(root: Holder, path: ResponsePath): [Holder, string | number] {
  let holder = root;
  let key: string | number = 'value';
  for (const step of path) {
    const inner = holder[key];
    if (typeof inner !== 'object' || inner === null || inner instanceof Error) break;
    // Only places that are there: anything else would make a list longer, or worse.
    if (!Object.hasOwn(inner, step)) break;
    holder = inner as Holder;
    key = step;
  }
  return [holder, key];
}
