import { GraphQLError } from 'graphql';

/** What an error code means to the parts of the gateway. */
type Meaning =
  /** The request is wrong, or its caller can handle the error: alerts do not count it. */
  | 'mistake'
  /** Lasts until the cause is corrected: an export does not try again. */
  | 'lasting'
  /** The operation does not match the schema, or exceeds a limit: an export tries a smaller one. */
  | 'invalid';

/** What a code means to the parts of the gateway, and what docs/reference.md says about it. */
export interface Code {
  /** Default: nothing. */
  readonly means?: readonly Meaning[];
  readonly when: string;
  readonly advice: string;
  /** Whether only the operator can help. Default: false. */
  readonly isForOperator?: boolean;
}

/** Every `extensions.code` that a caller can get, except the codes of the upstream's own errors. A closed list. */
export const CODES = {
  UPSTREAM_UNREACHABLE: {
    when: 'the recruiting service is unavailable',
    advice: 'try later, after `retryAfter` seconds where the error has them',
  },
  UPSTREAM_TIMEOUT: {
    when: 'the recruiting service did not answer in time',
    advice: 'try later; request less at a time',
  },
  UPSTREAM_BAD_RESPONSE: {
    when: 'the response is not valid GraphQL, lacks a value, or does not match the schema snapshot',
    advice: 'leave the field out; report it to the operator',
  },
  UPSTREAM_RATE_LIMITED: {
    when: 'the recruiting service limits the rate of requests',
    advice: 'try again after `retryAfter` seconds',
  },
  UPSTREAM_UNAUTHORIZED: {
    means: ['lasting'],
    when: 'the service rejects an access token that has not expired, or the request for a new one',
    advice:
      '`tokens check` shows whether it still does; [tokens.md](tokens.md#when-something-is-wrong)',
    isForOperator: true,
  },
  TOKENS_MISSING: {
    means: ['lasting'],
    when: 'no tokens were imported, or they were moved',
    advice: '[tokens.md](tokens.md#when-something-is-wrong)',
    isForOperator: true,
  },
  TOKENS_LOST: {
    means: ['lasting'],
    when: 'the refresh token does not work anymore',
    advice: '[tokens.md](tokens.md#when-the-tokens-are-lost)',
    isForOperator: true,
  },
  DRAIN_LIMIT_EXCEEDED: {
    means: ['mistake'],
    when: 'one operation reads more than `DRAIN_MAX_ITEMS` records',
    advice: 'narrow the list, or page through the connection',
  },
  DRAIN_STALLED: {
    means: ['lasting'],
    when: 'the service reports a next page, but its cursor leads nowhere new',
    advice: 'try later; report it to the service',
  },
  DRAIN_INTERRUPTED: {
    when: 'a page in the middle of a drain could not be read',
    advice: '[two ways](#a-drain-that-ended-early)',
  },
  CURSOR_INVALID: {
    means: ['mistake', 'lasting'],
    when: 'the cursor is damaged, outdated, or of another list or other filters',
    advice: 'pass cursors on unchanged, or start without one',
  },
  BAD_USER_INPUT: {
    means: ['mistake', 'lasting', 'invalid'],
    when: 'a negative or too large count, malformed JSON, an invalid operation',
    advice: 'correct the request',
  },
  UNAUTHENTICATED: {
    means: ['mistake', 'lasting'],
    when: 'there is no credential, or it is not valid (status 401)',
    advice: 'send one; get a new one',
  },
  FORBIDDEN: {
    means: ['mistake', 'lasting'],
    when: 'a mutation, text, host name or origin is not allowed; a scope is missing',
    advice: 'ask the operator for it',
  },
  RATE_LIMITED: {
    means: ['mistake'],
    when: '`PAGES_PER_MINUTE` or memory used up, too many requests wait, or a token cannot be checked',
    advice: 'try again after `retryAfter` seconds',
  },
  OPERATION_TOO_COMPLEX: {
    means: ['mistake', 'lasting', 'invalid'],
    when: 'over a limit of [callers.md](callers.md#limits), or the service refuses even a single record with these fields',
    advice: 'split the operation; request fewer fields',
  },
  PERSISTED_QUERY_NOT_FOUND: {
    means: ['mistake', 'lasting'],
    when: 'no trusted document has the id or hash of the request',
    advice: 'clients send the text by themselves; otherwise, ask the operator to add the document',
  },
  PERSISTED_QUERY_NOT_SUPPORTED: {
    means: ['mistake', 'lasting'],
    when: 'a request has only the hash of its text, and there are no trusted documents',
    advice: 'clients send the text by themselves; otherwise, send a `query`',
  },
  INTERNAL_SERVER_ERROR: {
    when: 'a fault of the gateway, or its token store fails: the log says which',
    advice:
      'find the `id` of the error in the log, and report it with that entry; for the store: [tokens.md](tokens.md#when-something-is-wrong)',
    isForOperator: true,
  },
} as const satisfies Record<string, Code>;

export type ErrorCode = keyof typeof CODES;

export const ERROR_CODES = Object.keys(CODES) as readonly ErrorCode[];

/** Whether a code has this meaning. False for codes that are not the gateway's. */
export function means(code: unknown, meaning: Meaning): boolean {
  const known = knownCode(code);
  return known !== 'OTHER' && (CODES[known] as Code).means?.includes(meaning) === true;
}

/**
 * Creates an error for the caller: a stable code, a message that says what to do, and the facts as fields.
 *
 * `cause` is for the log only. It is not `originalError`: Yoga masks an error whose original is not a
 * GraphQLError, and ours must arrive.
 */
export function codedError(
  code: ErrorCode,
  message: string,
  facts: { extensions?: Record<string, unknown>; cause?: unknown } = {},
): GraphQLError {
  const error = new GraphQLError(message, { extensions: { ...facts.extensions, code } });
  if (facts.cause !== undefined) error.cause = facts.cause;
  return error;
}

/**
 * An error whose message is for the operator: it names settings, commands or files, or the state of the tokens.
 * `http/error-policy.ts` logs it; callers get the code, the id of the request, and `messageForCallers`.
 */
export class OperatorError extends GraphQLError {
  override name = 'OperatorError';

  /** @param facts.retryAfter seconds after which it may succeed. Default: 60 for a lasting cause, otherwise 10 */
  constructor(
    code: ErrorCode,
    message: string,
    facts: { retryAfter?: number; cause?: unknown } = {},
  ) {
    const { retryAfter = means(code, 'lasting') ? 60 : 10, cause } = facts;
    super(message, { extensions: { code, retryAfter } });
    if (cause !== undefined) this.cause = cause;
  }
}

/** Returns the message that a caller may read. */
export function messageForCallers(error: GraphQLError): string {
  if (!(error instanceof OperatorError)) return error.message;
  const { code, retryAfter } = error.extensions;
  return means(code, 'lasting')
    ? 'The recruiting service is temporarily unavailable, until the operator of this gateway has acted.'
    : `The recruiting service is temporarily unavailable. Try again in ${String(retryAfter)} s.`;
}

/** Creates the error for a request that is not a GraphQL request: its status is 400, whatever the caller accepts. */
export function badRequest(message: string): GraphQLError {
  return codedError('BAD_USER_INPUT', message, {
    extensions: { http: { status: 400, isForAll: true } },
  });
}

/**
 * Creates the error for an operation that this caller may not execute. As for errors of the validation, `spec` keeps
 * the status 200 for callers that accept application/json.
 */
export function forbidden(message: string): GraphQLError {
  return codedError('FORBIDDEN', message, { extensions: { http: { status: 403, spec: true } } });
}

/** Returns one of the gateway's codes; `OTHER` for any other value, which may come from the upstream. */
export function knownCode(code: unknown): ErrorCode | 'OTHER' {
  return ERROR_CODES.find((known) => known === code) ?? 'OTHER';
}

/** Returns the `extensions.code` of a GraphQL error, the gateway's or the upstream's; undefined for any other error. */
export function codeOf(error: unknown): unknown {
  return error instanceof GraphQLError ? error.extensions['code'] : undefined;
}

/** The `cause` of an error whose request was too big: the service, or a proxy in front of it, said so. */
export class TooBig extends Error {
  override name = 'TooBig';
}

/** Returns all errors of what was thrown. */
export function errorsThrown(thrown: unknown): readonly unknown[] {
  return thrown instanceof AggregateError ? thrown.errors : [thrown];
}

/** A mistake that the operator must correct first, such as a setting or an option. The message says how. */
export class OperatorMistake extends Error {
  override name = 'OperatorMistake';
}

/** Several mistakes of the operator, reported at once. */
export class OperatorMistakes extends OperatorMistake {
  /** @param subject what contains them, for example a file */
  constructor(subject: string, mistakes: readonly string[]) {
    const count = mistakes.length === 1 ? 'a mistake' : `${mistakes.length} mistakes`;
    super(`${subject} has ${count}:\n${mistakes.map((mistake) => `  - ${mistake}`).join('\n')}`);
  }
}

const LONGEST = 300;

/** Makes text of the service safe for messages, logs and terminals: one line, without control characters, shortened. */
export function onOneLine(text: string): string {
  const line = text.replace(/[\p{C}\s]+/gu, ' ').trim();
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
}
