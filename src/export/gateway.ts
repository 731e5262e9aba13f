import { Agent, fetch as fetchOver, ProxyAgent } from 'undici';
import { isJsonObject, parseExactly } from '../engine/json.ts';
import { means } from '../errors.ts';

/** An answer of a gateway. Integers that JavaScript cannot represent keep their digits. */
export interface Answer {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly AnswerError[];
}

interface AnswerError {
  readonly message?: string;
  readonly extensions?: Readonly<Record<string, unknown>>;
}

/** The gateway that a list is exported from: it runs elsewhere, or inside this process. */
export interface Gateway {
  /** @throws GatewayFailure without an answer */
  send(query: string, variables: object, signal: AbortSignal): Promise<Answer>;
  close(): Promise<void>;
}

interface Response {
  readonly status: number;
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
    async send(query, variables, signal) {
      const init: RequestInit = {
        method: 'POST',
        headers: {
          ...credential,
          'content-type': 'application/json',
          accept: 'application/json',
        },
        body: JSON.stringify({ query, variables }),
        // Elsewhere, the key would be shown to somebody else.
        redirect: 'manual',
        signal,
      };
      try {
        const response = await fetch(url, init);
        return answerIn(await response.text(), response.status, url);
      } catch (error) {
        signal.throwIfAborted();
        throw error instanceof GatewayFailure ? error : unanswered(url, error);
      }
    },
  };
}

/** @throws GatewayFailure for what no gateway answers */
function answerIn(text: string, status: number, url: string): Answer {
  let answer: unknown;
  try {
    answer = parseExactly(text);
  } catch {
    // Not JSON.
  }
  if (isJsonObject(answer) && ('data' in answer || 'errors' in answer)) return answer;
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

  static of({ message = NO_REASON, extensions = {} }: AnswerError): GatewayFailure {
    const { code, reason, retryAfter, pages, pagesPerMinute } = extensions;
    const isKeyMissing = code === 'UNAUTHENTICATED';
    return new GatewayFailure(isKeyMissing ? `${message} ${SET_KEY}` : message, {
      code: typeof code === 'string' ? code : undefined,
      isTemporary: !means(code, 'lasting') && !means(reason, 'lasting'),
      isMistake: isKeyMissing || code === 'FORBIDDEN',
      retryAfter: Number(retryAfter) > 0 ? Number(retryAfter) : undefined,
      minutesOfPages: Number(pages) / Number(pagesPerMinute) || 0,
    });
  }
}

export const NO_REASON = 'The gateway gave no reason.';

const SET_KEY =
  'Set EXPORT_API_KEY to a key of this gateway; its operator makes one with `keys new <name> --scopes read`.';

function unanswered(url: string, cause: unknown): GatewayFailure {
  const { host } = new URL(url);
  const message = `The gateway at ${host} did not answer (${reasonOf(cause)}). Check that it is running, and the address in --url.`;
  return new GatewayFailure(message, { isTemporary: true, cause });
}

/** The code of a network error, which fetch hides in its cause. */
function reasonOf(error: unknown): string {
  const { code, cause, name } = error as { code?: unknown; cause?: unknown; name?: string };
  if (typeof code === 'string') return code;
  return cause instanceof Error ? reasonOf(cause) : (name ?? 'unknown');
}
