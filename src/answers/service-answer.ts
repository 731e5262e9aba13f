import type { Json } from '../json.ts';
import { ownError, startsWith, type Path, type UpstreamError } from './answer-errors.ts';

/** An answer of the service, taken apart. */
export interface ServiceAnswer {
  readonly data: Json | undefined;
  readonly errors: readonly UpstreamError[];
  /** As they were written. */
  readonly extensions: string | undefined;
}

export function readAnswer(answer: Json): ServiceAnswer {
  const extensions = answer.get('extensions');
  return {
    data: answer.get('data'),
    errors: readErrors(answer.get('errors')?.values ?? []),
    extensions: extensions?.kind === 'object' ? extensions.raw : undefined,
  };
}

/** A value within an answer, with its errors. Their paths begin at the value. */
export interface Found {
  readonly value: Json | undefined;
  readonly errors: readonly UpstreamError[];
}

/** Finds the value at a path below. Errors with another path, or without one, are kept with an empty path. */
export function descend({ value, errors }: Found, path: readonly string[]): Found {
  let inner = value;
  for (const step of path) inner = inner?.get(step);
  return {
    value: inner,
    errors: errors.map((error) => ({
      ...error,
      path: error.path && startsWith(error.path, path) ? error.path.slice(path.length) : [],
    })),
  };
}

/** Errors per answer. Each is copied, placed and written, and all other requests wait meanwhile. */
const MAX_ERRORS = 3_000;

function readErrors(errors: readonly Json[]): readonly UpstreamError[] {
  const read = errors.slice(0, MAX_ERRORS).map(readError);
  if (errors.length <= MAX_ERRORS) return read;
  return [...read, tooMany(errors.length - MAX_ERRORS)];
}

function readError(error: Json, order: number): UpstreamError {
  const message = error.get('message')?.string ?? 'The recruiting service reported an error.';
  const members = error.keys.flatMap((key, i) =>
    NOT_PASSED_ON.has(key) || (key === 'extensions' && error.values[i]!.kind !== 'object')
      ? []
      : [`${JSON.stringify(key)}:${error.values[i]!.raw}`],
  );
  const code = error.get('extensions')?.get('code');
  return {
    message,
    path: readPath(error.get('path')),
    members: members.join(','),
    code: code?.string ?? code?.raw,
    order,
  };
}

/** Locations refer to the document that the gateway sent, not to the caller's. */
const NOT_PASSED_ON = new Set(['message', 'path', 'locations']);

function readPath(path: Json | undefined): Path | undefined {
  if (path?.kind !== 'list') return undefined;
  const steps = path.values.map((step) =>
    /^\d+$/.test(step.raw) ? Number(step.raw) : step.string,
  );
  return steps.some((step) => step === undefined) ? undefined : (steps as Path);
}

function tooMany(count: number): UpstreamError {
  return ownError(
    'UPSTREAM_BAD_RESPONSE',
    `The recruiting service reported ${count} more errors, which are left out. Request less at a time.`,
  );
}
