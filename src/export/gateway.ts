import type { Clock } from '../clock.ts';
import { isJsonObject, parseExactly } from '../engine/json.ts';
import { means, OperatorMistake } from '../errors.ts';

/** The key of the list in the operations of an export. */
export const LIST_KEY = 'records';

/** Records of a list, as a gateway answers them. */
interface Window {
  readonly edges: readonly { readonly cursor: string; readonly node: unknown }[];
  readonly pageInfo: { readonly hasNextPage: boolean };
}

interface Answer {
  readonly window: Window;
  /** For each value that the service could not return, and that is null, the reason. */
  readonly faults: readonly string[];
}

interface AnswerError {
  readonly message?: string;
  readonly extensions?: Readonly<Record<string, unknown>>;
}

interface Response {
  readonly status: number;
  text(): Promise<string>;
}

interface GatewayOptions {
  readonly url: string;
  /** Over the network, or into a gateway in this process. */
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  readonly apiKey: string | undefined;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called before each wait. */
  readonly onWait: (message: string, seconds: number) => void;
}

/** A failure is final after this time without an answer. */
const PATIENCE_MS = 5 * 60_000;
/** Unless the gateway says how long. */
const WAIT_S = 10;

/** The gateway that a list is exported from. */
export class Gateway {
  readonly #options: GatewayOptions;

  constructor(options: GatewayOptions) {
    this.#options = options;
  }

  /**
   * Sends an operation until it is answered. Integers that JavaScript cannot represent keep their digits.
   *
   * @throws GatewayFailure, or OperatorMistake for what the operator must correct first
   */
  async ask(query: string, variables: object = {}): Promise<Answer> {
    const { clock, signal, onWait } = this.#options;
    const end = clock.elapsed() + PATIENCE_MS;
    for (;;) {
      try {
        return await this.#send(query, variables);
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof GatewayFailure) || !error.reasons.isTemporary) throw error;
        const { retryAfter = WAIT_S } = error.reasons;
        if (clock.elapsed() + retryAfter * 1000 > end) throw error;
        onWait(error.message, retryAfter);
        await clock.sleep(retryAfter * 1000, signal);
      }
    }
  }

  async #send(query: string, variables: object): Promise<Answer> {
    const { url, fetch, apiKey, signal } = this.#options;
    const init: RequestInit = {
      method: 'POST',
      headers: {
        ...(apiKey !== undefined && { 'x-api-key': apiKey }),
        'content-type': 'application/json',
        accept: 'application/json',
      },
      body: JSON.stringify({ query, variables }),
      // Elsewhere, the key would be shown to somebody else.
      redirect: 'manual',
      signal,
    };
    let [status, text] = [0, ''];
    try {
      const response = await fetch(url, init);
      [status, text] = [response.status, await response.text()];
    } catch (error) {
      throw unanswered(url, error);
    }
    return answerIn(text, status, url);
  }
}

function answerIn(text: string, status: number, url: string): Answer {
  let answer: unknown;
  try {
    answer = parseExactly(text);
  } catch {
    // Not JSON.
  }
  if (!isJsonObject(answer) || !('data' in answer || 'errors' in answer)) {
    const message = `${new URL(url).host} did not answer as a gateway does (HTTP ${status}). Check the address in --url.`;
    if (status !== 429 && status < 500) throw new OperatorMistake(message);
    throw new GatewayFailure(message, { isTemporary: true });
  }
  const { data, errors = [] } = answer as {
    data?: Record<string, Window | null> | null;
    errors?: readonly AnswerError[];
  };
  const window = data?.[LIST_KEY];
  if (!data || window === null) throw failureOf(errors[0] ?? {});
  // A list below a record is null only because the caller has used the pages of the minute.
  const spent = errors.find(({ extensions }) => extensions?.['pagesPerMinute'] !== undefined);
  if (spent) throw failureOf(spent);
  return { window: window!, faults: errors.map(({ message = NO_REASON }) => message) };
}

interface Reasons {
  readonly code?: unknown;
  /** Whether the same request may succeed later. */
  readonly isTemporary: boolean;
  /** Seconds. */
  readonly retryAfter?: number | undefined;
  /** Whether an operation for fewer records may succeed. */
  readonly isTooMuch?: boolean;
}

/** The reason why a gateway returned nothing, or not everything. */
export class GatewayFailure extends Error {
  override name = 'GatewayFailure';
  readonly reasons: Reasons;

  constructor(message: string, reasons: Reasons) {
    super(message);
    this.reasons = reasons;
  }
}

function failureOf({ message = NO_REASON, extensions = {} }: AnswerError): Error {
  const { code, reason, pages, pagesPerMinute } = extensions;
  if (code === 'UNAUTHENTICATED') return new OperatorMistake(`${message} ${SET_KEY}`);
  if (code === 'FORBIDDEN') return new OperatorMistake(message);
  // The window may exceed CONNECTION_MAX, or need more pages than its caller has in a minute.
  const isTooMuch = means(code, 'invalid') || Number(pages) > Number(pagesPerMinute);
  // Once the pages of a minute are used up, all that an operation needs are back after a minute.
  const retryAfter = pagesPerMinute === undefined ? Number(extensions['retryAfter']) : 60;
  return new GatewayFailure(message, {
    code,
    isTemporary: !isTooMuch && !means(code, 'lasting') && !means(reason, 'lasting'),
    retryAfter: retryAfter > 0 ? retryAfter : undefined,
    isTooMuch,
  });
}

const NO_REASON = 'The gateway gave no reason.';

const SET_KEY =
  'Set EXPORT_API_KEY to a key of this gateway; its operator makes one with `keys new <name> --scopes read`.';

function unanswered(url: string, error: unknown): GatewayFailure {
  // fetch hides the code of a network error in its cause.
  const { cause, name } = error as { cause?: { code?: string }; name?: string };
  const message = `The gateway at ${new URL(url).host} did not answer (${cause?.code ?? name}). Check that it is running, and the address in --url.`;
  return new GatewayFailure(message, { isTemporary: true });
}
