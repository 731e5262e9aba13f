import { GraphQLError } from 'graphql';
import { codedError, type ErrorCode } from '../errors.ts';
import type { Json } from '../json.ts';

export type Path = readonly (string | number)[];

/** An error of the service, its path beginning at the value that it came with. */
export interface UpstreamError {
  readonly message: string;
  /** Undefined where the service named none that could be one. */
  readonly path: Path | undefined;
  /** `extensions` and whatever else it has, as it was written: members of an object of JSON. */
  readonly members: string;
  /** Its `extensions.code`, for telemetry. */
  readonly code: unknown;
  /** Its place among the errors of the service's answer. */
  readonly order: number;
}

/** An error of the answer, as callers see it. */
export type AnswerError =
  UpstreamError | { readonly thrown: unknown; readonly path: Path | undefined };

/** Of one answer. Each is copied, placed and written, while everybody else waits. */
const MAX_ERRORS = 3_000;

export function readErrors(errors: readonly Json[]): readonly UpstreamError[] {
  const read = errors.slice(0, MAX_ERRORS).map(readError);
  if (errors.length <= MAX_ERRORS) return read;
  return [...read, tooMany(errors.length - MAX_ERRORS)];
}

/** The path of an error as the caller knows it: nothing in it is of the gateway's own making. */
export function callerPath(path: Path): Path {
  const own = path.findIndex((step) => typeof step === 'string' && step.startsWith(OWN));
  if (own < 0) return path;
  const inlined = INLINED_PAGE.exec(String(path[own]));
  if (!inlined) return path.slice(0, own);
  const [head, length] = inlined;
  return [...path.slice(0, own), String(path[own]).slice(head.length + Number(length) + 1)];
}

/**
 * The key under which the first page of a nested list comes along with its parent. It is made of the parent's
 * type and the caller's key, so that two nodes merge there exactly where they merge for the caller.
 */
export function inlinedPageKey(parent: string, key: string): string {
  return `_rsPage${parent.length}_${parent}_${key}`;
}

/** All keys that the gateway adds to requests begin so; callers may not use them. */
const OWN = '_rs';
export const INLINED_PAGE = /^_rsPage(\d+)_/;

export function startsWith(path: Path, start: Path): boolean {
  return start.length <= path.length && start.every((step, i) => path[i] === step);
}

/** @param prefix where the value that the error's path begins at is in the answer */
export function placed(error: UpstreamError, prefix: Path): UpstreamError {
  return { ...error, path: error.path ? [...prefix, ...callerPath(error.path)] : prefix };
}

/** What the type does not allow: an error at its own place, never a silent null. */
export function brokenValue(what: string, expected: string): GraphQLError {
  return codedError(
    'UPSTREAM_BAD_RESPONSE',
    `The recruiting service gave ${what} where its schema promises ${expected}. ` +
      'Leave this field out; the operator can compare the schema snapshot with the service.',
  );
}

/**
 * The errors of an answer as JSON.
 *
 * @param mask what every error goes through that the service did not send
 */
export function writeError(error: AnswerError, mask: (error: unknown) => Error): string {
  if (!('thrown' in error)) {
    const path = error.path ? `,"path":${JSON.stringify(error.path)}` : '';
    const members = error.members === '' ? '' : `,${error.members}`;
    return `{"message":${JSON.stringify(error.message)}${path}${members}}`;
  }
  const masked = mask(error.thrown);
  const { message } = masked;
  const extensions = masked instanceof GraphQLError ? { ...masked.extensions } : {};
  // That is for the server that writes a refusal.
  delete extensions['http'];
  const path = error.path ?? (masked instanceof GraphQLError ? masked.path : undefined);
  return JSON.stringify({
    message,
    ...(masked instanceof GraphQLError && masked.locations && { locations: masked.locations }),
    ...(path && { path }),
    ...(Object.keys(extensions).length > 0 && { extensions }),
  });
}

/** The list of errors of an answer. @param mask as in writeError */
export function writeErrors(
  errors: readonly AnswerError[],
  mask: (error: unknown) => Error,
): string {
  return `[${errors.map((error) => writeError(error, mask)).join(',')}]`;
}

/** The code of the first error, for telemetry; undefined without one. */
export function codeOfFirst(
  [first]: readonly AnswerError[],
  mask: (error: unknown) => Error,
): unknown {
  if (!first) return undefined;
  if (!('thrown' in first)) return first.code ?? 'OTHER';
  const masked = mask(first.thrown);
  return masked instanceof GraphQLError ? masked.extensions['code'] : 'OTHER';
}

function readError(error: Json, order: number): UpstreamError {
  const message = error.get('message')?.string ?? 'The recruiting service reported an error.';
  const members = error.keys.flatMap((key, i) =>
    OF_ITS_OWN.has(key) || (key === 'extensions' && error.values[i]!.kind !== 'object')
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

/** Locations point into the document that we sent, not into the caller's. */
const OF_ITS_OWN = new Set(['message', 'path', 'locations']);

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
    `The recruiting service reported ${count} more errors, which are left out. Ask for less at a time.`,
  );
}

/** An error of the gateway's in place of one of the service: written once, without the stack of an exception. */
export function ownError(code: ErrorCode, message: string, path?: Path): UpstreamError {
  return { message, path, members: `"extensions":{"code":"${code}"}`, code, order: Infinity };
}
