import type { ErrorCode } from '../errors.ts';
import type { Json } from '../json.ts';

interface Facts {
  readonly code?: string | undefined;
  readonly isTemporary: boolean;
  readonly retryAfter?: number | undefined;
  readonly resumeAfter?: string | undefined;
  readonly cause?: unknown;
}

/** Why a gateway gave nothing, or not all. */
export class GatewayFailure extends Error {
  override name = 'GatewayFailure';
  readonly code: string | undefined;
  /** Whether the same request may succeed later. */
  readonly isTemporary: boolean;
  /** Seconds. */
  readonly retryAfter: number | undefined;
  /** A cursor behind the records that were sent before. */
  readonly resumeAfter: string | undefined;

  constructor(message: string, { code, isTemporary, retryAfter, resumeAfter, cause }: Facts) {
    super(message, { cause });
    this.code = code;
    this.isTemporary = isTemporary;
    this.retryAfter = retryAfter;
    this.resumeAfter = resumeAfter;
  }

  /** Reads an error of a GraphQL answer. */
  static of(error: Json): GatewayFailure {
    const extensions = error.get('extensions');
    const code = extensions?.get('code')?.string;
    const reason = extensions?.get('reason')?.string;
    const seconds = Number(extensions?.get('retryAfter')?.raw);
    const message = error.get('message')?.string ?? 'The gateway gave no reason.';
    const isKeyMissing = code === ('UNAUTHENTICATED' satisfies ErrorCode);
    return new GatewayFailure(isKeyMissing ? `${message} ${SET_KEY}` : message, {
      code,
      isTemporary: ![code, reason].some((one) => PERMANENT.includes(one)),
      retryAfter: seconds > 0 ? seconds : undefined,
      resumeAfter: extensions?.get('resumeAfter')?.string,
    });
  }

  static unreachable(url: string, cause: unknown): GatewayFailure {
    const { host } = new URL(url);
    const message = `The gateway at ${host} cannot be reached (${reasonOf(cause)}). Check that it is running, and the address in --url.`;
    return new GatewayFailure(message, { isTemporary: true, cause });
  }

  static cutOff(cause: unknown): GatewayFailure {
    const message = `The answer of the gateway ended in the middle (${reasonOf(cause)}).`;
    return new GatewayFailure(message, { isTemporary: true, cause });
  }

  static notAGateway(url: string, what: string, status = 200): GatewayFailure {
    const { host } = new URL(url);
    const isTemporary = status === 429 || status >= 500;
    const message = `${host} did not answer as a gateway does (${what}). Check the address in --url.`;
    return new GatewayFailure(message, { isTemporary });
  }

  /** Whether the operation does not fit the schema, or the schema is not shown to this caller. */
  get isInvalid(): boolean {
    return INVALID.includes(this.code);
  }
}

const SET_KEY =
  'Set EXPORT_API_KEY to a key of this gateway; its operator makes one with `keys new <name> --scopes read+drain`.';

const INVALID: readonly unknown[] = [
  'BAD_USER_INPUT',
  'OPERATION_TOO_COMPLEX',
] satisfies ErrorCode[];

/** Somebody has to do something first. */
const PERMANENT: readonly unknown[] = [
  'UPSTREAM_UNAUTHORIZED',
  'TOKENS_MISSING',
  'TOKENS_LOST',
  'DRAIN_STALLED',
  'CURSOR_INVALID',
  'BAD_USER_INPUT',
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'OPERATION_TOO_COMPLEX',
] satisfies ErrorCode[];

/** The code of a network error, which fetch hides in its cause. */
function reasonOf(error: unknown): string {
  const { code, cause, name } = error as { code?: unknown; cause?: unknown; name?: string };
  if (typeof code === 'string') return code;
  return cause instanceof Error ? reasonOf(cause) : (name ?? 'unknown');
}
