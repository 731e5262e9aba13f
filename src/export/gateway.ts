import { fetch as fetchOver, type Dispatcher } from 'undici';
import { isJsonObject, parseExactly } from '../engine/json.ts';
import { means } from '../errors.ts';

/** An answer of a gateway. Integers that JavaScript cannot represent keep their digits. */
interface Answer {
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

/** @param dispatcher closed with the gateway */
export function gatewayAt(
  url: string,
  apiKey: string | undefined,
  dispatcher: Dispatcher,
): Gateway {
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
  readonly code?: unknown;
  /** Whether the same request may succeed later. */
  readonly isTemporary: boolean;
  /** Whether somebody has to correct something first, such as the address or the key. */
  readonly isMistake?: boolean;
  /** Seconds. */
  readonly retryAfter?: number | undefined;
  /** Whether an operation for fewer records may succeed. */
  readonly isTooMuch?: boolean;
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
    const { code, reason, pages, pagesPerMinute } = extensions;
    // Once the pages of a minute are used up, all that an operation needs are back after a minute.
    const retryAfter = pagesPerMinute === undefined ? Number(extensions['retryAfter']) : 60;
    const isKeyMissing = code === 'UNAUTHENTICATED';
    return new GatewayFailure(isKeyMissing ? `${message} ${SET_KEY}` : message, {
      code,
      isTemporary: !means(code, 'lasting') && !means(reason, 'lasting'),
      isMistake: isKeyMissing || code === 'FORBIDDEN',
      retryAfter: retryAfter > 0 ? retryAfter : undefined,
      // The window may also exceed CONNECTION_MAX, or need more pages than its caller has in a minute.
      isTooMuch: means(code, 'invalid') || Number(pages) > Number(pagesPerMinute),
    });
  }
}

export const NO_REASON = 'The gateway gave no reason.';

const SET_KEY =
  'Set EXPORT_API_KEY to a key of this gateway; its operator makes one with `keys new <name> --scopes read`.';

function unanswered(url: string, error: unknown): GatewayFailure {
  // fetch hides the code of a network error in its cause.
  const { cause, name } = error as { cause?: { code?: string }; name?: string };
  const message = `The gateway at ${new URL(url).host} did not answer (${cause?.code ?? name}). Check that it is running, and the address in --url.`;
  return new GatewayFailure(message, { isTemporary: true, cause: error });
}
