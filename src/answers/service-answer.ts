import type { Json } from '../json.ts';
import { STEP, type Pausable } from '../pausable.ts';
import {
  MAX_ERRORS,
  ownError,
  startsWith,
  type Path,
  type UpstreamError,
} from './answer-errors.ts';

/** An answer of the service, taken apart. */
export interface ServiceAnswer {
  readonly data: Json | undefined;
  readonly errors: readonly UpstreamError[];
  /** As they were written. */
  readonly extensions: string | undefined;
}

export function* readAnswer(answer: Json): Pausable<ServiceAnswer> {
  const members = answer.members(MEMBERS);
  const extensions = members.get('extensions');
  return {
    data: members.get('data'),
    errors: yield* readErrors(members.get('errors')),
    extensions: extensions?.kind === 'object' ? extensions.raw : undefined,
  };
}

const MEMBERS: ReadonlySet<string> = new Set(['data', 'errors', 'extensions']);

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

function* readErrors(errors: Json | undefined): Pausable<readonly UpstreamError[]> {
  const read: UpstreamError[] = [];
  let count = 0;
  let progress = 0;
  for (const error of errors?.elements() ?? []) {
    if (count < MAX_ERRORS) read.push(readError(error, count));
    count += 1;
    progress += error.length;
    if (progress <= STEP) continue;
    progress = 0;
    yield;
  }
  return count > MAX_ERRORS ? [...read, tooMany(count - MAX_ERRORS)] : read;
}

function readError(error: Json, order: number): UpstreamError {
  const known = error.members();
  const extensions = known.get('extensions');
  const members: string[] = [];
  for (const [key, value] of known) {
    if (NOT_PASSED_ON.has(key) || (key === 'extensions' && value.kind !== 'object')) continue;
    members.push(`${JSON.stringify(key)}:${value.raw}`);
  }
  const code = extensions?.get('code');
  return {
    message: known.get('message')?.string ?? 'The recruiting service reported an error.',
    path: readPath(known.get('path')),
    members: members.join(','),
    code: code?.string ?? code?.raw,
    order,
  };
}

/** Locations refer to the document that the gateway sent, not to the caller's. */
const NOT_PASSED_ON = new Set(['message', 'path', 'locations']);

function readPath(path: Json | undefined): Path | undefined {
  if (path?.kind !== 'list') return undefined;
  const steps = Array.from(path.elements(), (step) =>
    step.kind === 'number' ? indexIn(step.raw) : step.string,
  );
  return steps.some((step) => step === undefined) ? undefined : (steps as Path);
}

/** Some services write all numbers with a fraction or an exponent: 3.0, 3e0. */
function indexIn(number: string): number | undefined {
  const index = Number(number);
  return Number.isSafeInteger(index) && index >= 0 ? Math.abs(index) : undefined;
}

function tooMany(count: number): UpstreamError {
  return ownError(
    'UPSTREAM_BAD_RESPONSE',
    `The recruiting service reported ${count} more errors, which are left out. Request less at a time.`,
  );
}
