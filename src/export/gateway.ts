import { Agent, fetch as fetchOver, ProxyAgent } from 'undici';
import { parseExactly } from '../engine/json.ts';
import { means } from '../errors.ts';

/** An answer of a gateway, or a part of one. Integers that JavaScript cannot represent keep their digits. */
export interface Payload {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly AnswerError[];
  readonly incremental?: readonly Increment[];
  /** Undefined: the answer has one part. */
  readonly hasNext?: boolean;
}

interface Increment {
  /** Null: an error ends the list. */
  readonly items?: readonly unknown[] | null;
  readonly errors?: readonly AnswerError[];
  readonly extensions?: { readonly resumeAfter?: string; readonly listLength?: number };
}

interface AnswerError {
  readonly message?: string;
  readonly path?: readonly (string | number)[];
  readonly extensions?: Readonly<Record<string, unknown>>;
}

/** The gateway that a list is exported from: it runs elsewhere, or inside this process. */
export interface Gateway {
  /** Returns the parts of an answer as they arrive. @throws GatewayFailure without an answer, or without its last part */
  send(query: string, variables: object, signal: AbortSignal): AsyncGenerator<Payload>;
  close(): Promise<void>;
}

interface Response {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: AsyncIterable<Uint8Array> | null;
  text(): Promise<string>;
}

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** The gateway of this process, through its `fetch`. */
export function gatewayInside({ fetch }: { readonly fetch: Fetch }): Gateway {
  return gatewayOver(fetch, 'http://localhost/graphql', {}, async () => {});
}

/** @param proxy URL of the proxy to go through, if there is one */
export function gatewayAt(
  url: string,
  apiKey: string | undefined,
  proxy: string | undefined,
): Gateway {
  const dispatcher = proxy === undefined ? new Agent() : new ProxyAgent(proxy);
  // The types of undici and of Node describe the same interfaces, but are different types.
  const over = (to: string, init: RequestInit) =>
    fetchOver(to, { ...(init as object), dispatcher }) as Promise<Response>;
  const credential: Record<string, string> = apiKey === undefined ? {} : { 'x-api-key': apiKey };
  return gatewayOver(over, url, credential, () => dispatcher.destroy());
}

function gatewayOver(
  fetch: Fetch,
  url: string,
  credential: Record<string, string>,
  close: () => Promise<void>,
): Gateway {
  return {
    close,
    async *send(query, variables, signal) {
      const init: RequestInit = {
        method: 'POST',
        headers: {
          ...credential,
          'content-type': 'application/json',
          accept: 'multipart/mixed;deferSpec=20220824, application/json',
        },
        body: JSON.stringify({ query, variables }),
        redirect: 'error',
        signal,
      };
      try {
        const response = await fetch(url, init);
        for await (const text of partsOf(response)) yield payloadIn(text, response.status, url);
      } catch (error) {
        signal.throwIfAborted();
        throw error instanceof GatewayFailure ? error : unanswered(url, error);
      }
    },
  };
}

/**
 * Returns the bodies of the parts of a multipart answer (RFC 2046, 5.1) as they arrive, or the only body. A part ends
 * with the next boundary, which cannot occur in JSON: there, a line break is escaped.
 *
 * @throws Error when the answer ends before its last part
 */
async function* partsOf(response: Response): AsyncGenerator<string> {
  const type = response.headers.get('content-type') ?? '';
  if (!response.body || !type.startsWith('multipart/mixed')) {
    yield await response.text();
    return;
  }
  const boundary = `\r\n--${/boundary="?([^";]+)/i.exec(type)?.[1] ?? '-'}`;
  const decoder = new TextDecoder();
  // The first boundary may begin the answer, without a line break before it.
  let rest = '\r\n';
  // Reads to the end of the body: the gateway would count a client that stops at the last boundary as having left.
  for await (const piece of response.body) {
    const parts = (rest + decoder.decode(piece, { stream: true })).split(boundary);
    rest = parts.pop()!;
    for (const part of parts) {
      const headerEnd = part.indexOf('\r\n\r\n');
      if (headerEnd >= 0) yield part.slice(headerEnd + 4);
    }
  }
  if (!rest.startsWith('--')) throw new Error('The last boundary is missing.');
}

const MEMBERS = ['data', 'errors', 'incremental', 'hasNext'];

/** @throws GatewayFailure for what no gateway answers */
function payloadIn(text: string, status: number, url: string): Payload {
  let payload: unknown;
  try {
    payload = parseExactly(text);
  } catch {
    // Not JSON.
  }
  if (typeof payload === 'object' && payload && MEMBERS.some((key) => key in payload)) {
    return payload;
  }
  const isTemporary = status === 429 || status >= 500;
  const what = `${new URL(url).host} did not answer as a gateway does (HTTP ${status}).`;
  throw new GatewayFailure(`${what} Check the address in --url.`, {
    isTemporary,
    isMistake: !isTemporary,
  });
}

interface Reasons {
  readonly code?: string | undefined;
  /** Whether the same request may succeed later. */
  readonly isTemporary: boolean;
  /** Whether somebody has to correct something first, such as the address or the key. */
  readonly isMistake?: boolean;
  /** Seconds. */
  readonly retryAfter?: number | undefined;
  /** A cursor behind the records that were sent before. */
  readonly resumeAfter?: string | undefined;
  /** The minutes of the caller's budget that the pages of the operation take, also those that it was refused. */
  readonly minutesOfPages?: number;
  readonly cause?: unknown;
}

/** The reason why a gateway returned nothing, or not everything. */
export class GatewayFailure extends Error {
  override name = 'GatewayFailure';
  readonly reasons: Reasons;

  constructor(message: string, reasons: Reasons) {
    super(message, { cause: reasons.cause });
    this.reasons = reasons;
  }

  static of({ message = NO_REASON, path = [], extensions = {} }: AnswerError): GatewayFailure {
    const { code, reason, scope, retryAfter, resumeAfter, pages, pagesPerMinute } = extensions;
    const isKeyMissing = code === 'UNAUTHENTICATED';
    const isTooFew = code === 'FORBIDDEN' && typeof scope === 'string';
    const why = isTooFew
      ? `The key may not read a whole list: it lacks the scope "${scope}".`
      : message;
    // The cursor of an error below a record is of another list.
    const isOfList = !path.slice(1).some((key) => typeof key === 'string');
    return new GatewayFailure(isKeyMissing || isTooFew ? `${why} ${SET_KEY}` : why, {
      code: typeof code === 'string' ? code : undefined,
      isTemporary: !means(code, 'lasting') && !means(reason, 'lasting'),
      isMistake: isKeyMissing || code === 'FORBIDDEN',
      retryAfter: Number(retryAfter) > 0 ? Number(retryAfter) : undefined,
      resumeAfter: isOfList && typeof resumeAfter === 'string' ? resumeAfter : undefined,
      minutesOfPages: Number(pages) / Number(pagesPerMinute) || 0,
    });
  }
}

export const NO_REASON = 'The gateway gave no reason.';

const SET_KEY =
  'Set EXPORT_API_KEY to a key of this gateway; its operator makes one with `keys new <name> --scopes read+drain`.';

function unanswered(url: string, cause: unknown): GatewayFailure {
  const reason = reasonOf(cause);
  const advice = /SSL|EPROTO/.test(reason)
    ? 'Check the address in --url: a gateway without TLS has http://.'
    : 'Check that it is running, and the address in --url.';
  const message = `The gateway at ${new URL(url).host} did not answer (${reason}). ${advice}`;
  const isMistake = WRONG_ADDRESS.test(reason);
  return new GatewayFailure(message, { isTemporary: !isMistake, isMistake, cause });
}

/** Codes of network errors that will not go away: an unknown host name, and TLS that cannot work. */
const WRONG_ADDRESS = /^(?:ENOTFOUND|EPROTO|ERR_SSL_.*|ERR_TLS_.*|.*CERT.*|UNABLE_TO_VERIFY_.*)$/;

/** The code of a network error, which fetch hides in its cause. */
function reasonOf(error: unknown): string {
  const { code, cause, name } = error as { code?: unknown; cause?: unknown; name?: string };
  if (typeof code === 'string') return code;
  return cause instanceof Error ? reasonOf(cause) : (name ?? 'unknown');
}
