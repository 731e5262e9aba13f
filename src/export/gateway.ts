import { Agent, fetch as fetchOver, ProxyAgent } from 'undici';
import { means, type ErrorCode } from '../errors.ts';
import { parseJson, type Json } from './json.ts';
import { readBody } from '../memory/byte-limit.ts';

/** The gateway that a list is exported from: it runs elsewhere, or inside this process. */
export interface Gateway {
  /** Returns the `data` of an answer. @throws GatewayFailure */
  ask(query: string, signal: AbortSignal): Promise<Json>;
  /** Returns the payloads of an incremental answer. @throws GatewayFailure */
  stream(
    request: { readonly query: string; readonly variables: object },
    signal: AbortSignal,
  ): AsyncGenerator<Json, void, undefined>;
  close(): Promise<void>;
}

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** The gateway of this process, through its `fetch`. */
export function gatewayInside({ fetch }: { readonly fetch: Fetch }): Gateway {
  return gatewayOver(fetch, { url: 'http://localhost/graphql', headers: {} });
}

interface GatewayAddress {
  readonly url: string;
  readonly apiKey: string | undefined;
  /** URL of the proxy to go through, if there is one. */
  readonly proxy: string | undefined;
}

export function gatewayAt({ url, apiKey, proxy }: GatewayAddress): Gateway {
  const dispatcher = proxy === undefined ? new Agent() : new ProxyAgent(proxy);
  // The types of undici and of Node describe the same interfaces, but are different types.
  const over = ((to: string, init: RequestInit) =>
    fetchOver(to, { ...(init as object), dispatcher })) as unknown as Fetch;
  const headers = apiKey === undefined ? {} : { 'x-api-key': apiKey };
  return {
    ...gatewayOver(over, { url, headers }),
    close: () => dispatcher.destroy(),
  };
}

/** The size of the largest answer that is read whole, bytes. No answer to these operations is larger. */
const MAX_BYTES = 64 * 1024 * 1024;

function gatewayOver(
  fetch: Fetch,
  { url, headers }: { readonly url: string; readonly headers: Record<string, string> },
): Gateway {
  return {
    ask: async (query, signal) => {
      const answer = await wholeAnswer(await post({ query }, 'application/json', signal), signal);
      const data = answer.get('data');
      const [error] = answer.get('errors')?.elements() ?? [];
      if (error) throw GatewayFailure.of(error);
      if (data?.kind !== 'object') throw GatewayFailure.notAGateway(url, 'no data');
      return data;
    },
    stream: async function* (request, signal) {
      const accept = 'multipart/mixed;deferSpec=20220824, application/json';
      const response = await post(request, accept, signal);
      const type = response.headers.get('content-type') ?? '';
      if (!type.startsWith('multipart/mixed')) return yield await wholeAnswer(response, signal);
      try {
        for await (const part of partsOf(response.body!, type)) yield jsonOf(part, response);
      } catch (error) {
        signal.throwIfAborted();
        throw error instanceof GatewayFailure ? error : GatewayFailure.cutOff(error);
      }
    },
    close: async () => {},
  };

  async function post(request: object, accept: string, signal: AbortSignal): Promise<Response> {
    try {
      return await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json', accept },
        body: JSON.stringify(request),
        redirect: 'error',
        signal,
      });
    } catch (error) {
      signal.throwIfAborted();
      throw GatewayFailure.unreachable(url, error);
    }
  }

  async function wholeAnswer(response: Response, signal: AbortSignal): Promise<Json> {
    try {
      const text = response.body ? await readBody(response.body, { each: MAX_BYTES }) : '';
      return jsonOf(text, response);
    } catch (error) {
      signal.throwIfAborted();
      throw error instanceof GatewayFailure ? error : GatewayFailure.cutOff(error);
    }
  }

  function jsonOf(text: string, { status }: Response): Json {
    const json = parseJson(text);
    if (json?.kind !== 'object' || json.isEmpty)
      throw GatewayFailure.notAGateway(url, `HTTP ${status}`, status);
    return json;
  }
}

/**
 * Returns the bodies of the parts of a multipart answer (RFC 2046, 5.1) as they arrive. A part ends with the next
 * boundary, which cannot occur in JSON: there, a line break is escaped.
 *
 * @throws Error when the answer ends before its last part
 */
async function* partsOf(
  body: AsyncIterable<Uint8Array>,
  contentType: string,
): AsyncGenerator<string, void, undefined> {
  const boundary = `${CRLF}--${/boundary="?([^";]+)/i.exec(contentType)?.[1] ?? '-'}`;
  // Text before the first boundary is not a part. That boundary may begin the answer, without a line break before it.
  let text = CRLF;
  let isPart = false;
  let isOver = false;
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    // Reads on after the last boundary, because the gateway would count a client that stops there as having left.
    if (isOver) continue;
    // A part may arrive in many pieces: only the new one, and what may be the start of a boundary, is searched.
    let searched = Math.max(0, text.length - boundary.length - 2);
    text += decoder.decode(chunk, { stream: true });
    for (;;) {
      const end = text.indexOf(boundary, searched);
      // The two characters after a boundary show whether it is the last one.
      if (end < 0 || text.length < end + boundary.length + 2) break;
      if (isPart) {
        const part = text.slice(0, end);
        yield part.slice(part.indexOf(CRLF + CRLF) + 2 * CRLF.length);
      }
      isOver = text.startsWith('--', end + boundary.length);
      if (isOver) break;
      isPart = true;
      text = text.slice(end + boundary.length);
      searched = 0;
    }
  }
  if (!isOver) throw new Error('The last boundary is missing.');
}

const CRLF = '\r\n';

type Reasons = Partial<Omit<GatewayFailure, keyof Error | 'isTemporary' | 'isInvalid'>> &
  Pick<GatewayFailure, 'isTemporary'> & { readonly cause?: unknown };

/** The reason why a gateway returned nothing, or not everything. */
export class GatewayFailure extends Error {
  override name = 'GatewayFailure';
  declare readonly code?: string | undefined;
  /** Whether the same request may succeed later. */
  declare readonly isTemporary: boolean;
  /** Whether the gateway was not reached or cannot serve now, so that nothing is known about the request. */
  declare readonly isAway?: boolean;
  /** Whether the operator of the export has to correct something first, such as the address or the key. */
  declare readonly isMistake?: boolean;
  /** Seconds. */
  declare readonly retryAfter?: number | undefined;
  /** A cursor after the records that were sent before. */
  declare readonly resumeAfter?: string | undefined;
  /** The minutes of the caller's budget that the pages of the operation take, also those that it was refused. */
  declare readonly minutesOfPages?: number | undefined;

  constructor(message: string, { cause, ...reasons }: Reasons) {
    super(message, { cause });
    Object.assign(this, reasons);
  }

  /** Reads an error of a GraphQL answer. */
  static of(error: Json): GatewayFailure {
    const extensions = error.get('extensions');
    const code = extensions?.get('code')?.string;
    const reason = extensions?.get('reason')?.string;
    const seconds = Number(extensions?.get('retryAfter')?.raw);
    const minutes =
      Number(extensions?.get('pages')?.raw) / Number(extensions?.get('pagesPerMinute')?.raw);
    const message = error.get('message')?.string ?? 'The gateway gave no reason.';
    const isKeyMissing = code === ('UNAUTHENTICATED' satisfies ErrorCode);
    const isForbidden = code === ('FORBIDDEN' satisfies ErrorCode);
    const lacksDrain = isForbidden && extensions?.get('scope')?.string === 'drain';
    const advised = isKeyMissing ? `${message} ${SET_KEY}` : lacksDrain ? NEEDS_DRAIN : message;
    return new GatewayFailure(advised, {
      code,
      isTemporary: !means(code, 'lasting') && !means(reason, 'lasting'),
      isAway: code === ('RATE_LIMITED' satisfies ErrorCode),
      isMistake: isKeyMissing || isForbidden,
      retryAfter: seconds > 0 ? seconds : undefined,
      resumeAfter: isBelowRecord(error) ? undefined : extensions?.get('resumeAfter')?.string,
      minutesOfPages: minutes > 0 ? minutes : undefined,
    });
  }

  static unreachable(url: string, cause: unknown): GatewayFailure {
    const { host } = new URL(url);
    const reason = reasonOf(cause);
    const isMistake = WRONG_ADDRESS.test(reason);
    const advice = /SSL|EPROTO/.test(reason)
      ? 'Check the address in --url: a gateway without TLS has http://.'
      : 'Check that it is running, and the address in --url.';
    return new GatewayFailure(`The gateway at ${host} cannot be reached (${reason}). ${advice}`, {
      isTemporary: true,
      isAway: true,
      isMistake,
      cause,
    });
  }

  static cutOff(cause: unknown): GatewayFailure {
    const message = `The answer of the gateway ended in the middle (${reasonOf(cause)}).`;
    return new GatewayFailure(message, { isTemporary: true, isAway: true, cause });
  }

  static notAGateway(url: string, what: string, status = 200): GatewayFailure {
    const { host } = new URL(url);
    const isTemporary = status === 429 || status >= 500;
    const message = `${host} did not answer as a gateway does (${what}). Check the address in --url.`;
    return new GatewayFailure(message, {
      isTemporary,
      isAway: isTemporary,
      isMistake: !isTemporary,
    });
  }

  /** Whether the operation does not fit the schema, or the schema is not shown to this caller. */
  get isInvalid(): boolean {
    return means(this.code, 'invalid');
  }
}

/** The cursor of such an error belongs to a list below a record. */
function isBelowRecord(error: Json): boolean {
  const [, ...path] = error.get('path')?.elements() ?? [];
  return path.some(({ kind }) => kind === 'string');
}

const SET_KEY =
  'Set EXPORT_API_KEY to a key of this gateway; its operator makes one with `keys new <name> --scopes read+drain`.';

const NEEDS_DRAIN =
  'EXPORT_API_KEY lacks the scope drain. Have the operator of the gateway make a key with `--scopes read+drain`, and ' +
  'export with it.';

/** Codes of network errors that will not go away: an unknown host name, and TLS that cannot work. */
const WRONG_ADDRESS = /^(?:ENOTFOUND|EPROTO|ERR_SSL_.*|ERR_TLS_.*|.*CERT.*|UNABLE_TO_VERIFY_.*)$/;

/** The code of a network error, which fetch hides in its cause. */
function reasonOf(error: unknown): string {
  const { code, cause, name } = error as { code?: unknown; cause?: unknown; name?: string };
  if (typeof code === 'string') return code;
  return cause instanceof Error ? reasonOf(cause) : (name ?? 'unknown');
}
