import { GraphQLError } from 'graphql';
import { codedError, type ErrorCode } from '../errors.ts';

export type Path = readonly (string | number)[];

/** An error of the service. Its path begins at the value to which it belongs. */
export interface UpstreamError {
  readonly message: string;
  /** Undefined if the service reported no valid path. */
  readonly path: Path | undefined;
  /** `extensions` and all other members, as they were written: the members of a JSON object. */
  readonly members: string;
  /** Its `extensions.code`, for telemetry. */
  readonly code: unknown;
  /** The error type that the service returned as data, and its fields, as a JSON object: see `Result`. */
  readonly result?: string;
  /** Its index among the errors of the service's answer. */
  readonly order: number;
}

/** An error of the answer, as callers see it. */
export type AnswerError =
  UpstreamError | { readonly thrown: unknown; readonly path: Path | undefined };

export function isOfService(error: AnswerError): error is UpstreamError {
  return !('thrown' in error);
}

/** Returns the path as the caller knows it, without the keys that the gateway adds to requests. */
export function callerPath(path: Path): Path {
  const added = path.findIndex(
    (step) => typeof step === 'string' && step.startsWith(ADDED_KEY_PREFIX),
  );
  if (added < 0) return path;
  const renamed = RENAMED.exec(String(path[added]));
  if (!renamed) return path.slice(0, added);
  const [head, length] = renamed;
  return [...path.slice(0, added), String(path[added]).slice(head.length + Number(length) + 1)];
}

/**
 * Returns the key of an inlined first page. It consists of the parent's type and the caller's key, so that two field
 * nodes are merged exactly where they are merged for the caller.
 */
export function inlinedPageKey(parent: string, key: string): string {
  return `_rsPage${parent.length}_${parent}_${key}`;
}

/** The prefix of all keys that the gateway adds to requests. Callers must not use it. */
export const ADDED_KEY_PREFIX = '_rs';
export const INLINED_PAGE = /^_rsPage\d+_/;
const RENAMED = /^_rs(?:Page|Global)(\d+)_/;

export function startsWith(path: Path, start: Path): boolean {
  return start.length <= path.length && start.every((step, i) => path[i] === step);
}

/**
 * Creates the error for a value that its type does not allow, so that the value never becomes null without an error.
 */
export function brokenValue(what: string, expected: string): GraphQLError {
  return codedError(
    'UPSTREAM_BAD_RESPONSE',
    `The recruiting service returned ${what} where its schema promises ${expected}. ` +
      'Leave this field out; the operator can compare the schema snapshot with the service.',
  );
}

/** The largest number of errors per answer: all are written without a pause, while other requests wait. */
export const MAX_ERRORS = 3_000;

/** Replaces the errors of all broken values after the first MAX_ERRORS. */
export function moreBroken(): UpstreamError {
  return gatewayError(
    'UPSTREAM_BAD_RESPONSE',
    `The recruiting service returned more values that its schema does not allow. They are null without an error of their own.`,
  );
}

/** Replaces the errors of all fields that the caller may not read, after the first MAX_ERRORS. */
export function moreRefused(): UpstreamError {
  return gatewayError(
    'FORBIDDEN',
    'This answer has more fields for which this credential lacks a scope. They are null without an error of their own.',
  );
}

/** Replaces unexpected errors; every error that the service did not send goes through it. */
export type Mask = (error: unknown) => Error;

/** Writes an error as JSON. */
export function writeError(error: AnswerError, mask: Mask): string {
  if (!('thrown' in error)) {
    const path = error.path ? `,"path":${JSON.stringify(error.path)}` : '';
    const members = error.members === '' ? '' : `,${error.members}`;
    return `{"message":${JSON.stringify(error.message)}${path}${members}}`;
  }
  const masked = mask(error.thrown);
  const { message } = masked;
  const extensions = masked instanceof GraphQLError ? { ...masked.extensions } : {};
  // It only sets the HTTP status of a refusal.
  delete extensions['http'];
  const path = error.path ?? (masked instanceof GraphQLError ? masked.path : undefined);
  return JSON.stringify({
    message,
    ...(masked instanceof GraphQLError && masked.locations && { locations: masked.locations }),
    ...(path && { path }),
    ...(Object.keys(extensions).length > 0 && { extensions }),
  });
}

/** Writes a list of errors as JSON. */
export function writeErrors(errors: readonly AnswerError[], mask: Mask): string {
  return `[${errors.map((error) => writeError(error, mask)).join(',')}]`;
}

/**
 * Creates an error of the gateway in the form of one of the service: without an exception, and so without a stack
 * trace.
 */
export function gatewayError(code: ErrorCode, message: string, path?: Path): UpstreamError {
  return { message, path, members: `"extensions":{"code":"${code}"}`, code, order: Infinity };
}
