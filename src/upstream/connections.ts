import { Pool, ProxyAgent, type Dispatcher } from 'undici';
import type { GraphQLError } from 'graphql';
import type { Cause } from '../cause.ts';
import type { Clock } from '../clock.ts';
import { codedError, knownCode, PerhapsTooBig, type ErrorCode } from '../errors.ts';
import { BodiesTooLarge, BodyParts, ByteLimit } from '../memory/byte-limit.ts';
import { atOnce, beginning, inTurns, type Pausable } from '../pausable.ts';
import { Slots } from '../queue.ts';
import {
  agentHeaders,
  requestIdOfService,
  type OutgoingRequest,
  type Sender,
} from '../service/request.ts';
import type { BreakerTelemetry } from './breaker.ts';
import {
  MAX_RESPONSE_BYTES,
  readResponse,
  type HttpAnswer,
  type ReadAs,
  type UpstreamAnswer,
  type UpstreamFailure,
} from './read-response.ts';

export interface ConnectionsParts {
  readonly baseUrl: string;
  /** The value of `User-Agent` and `Api-User-Agent`. */
  readonly agent: string;
  /** The URL of the proxy to use; undefined: no proxy. */
  readonly proxy?: string | undefined;
  /** The most requests in flight, each on a separate connection. */
  readonly concurrency: number;
  /** The most bytes of answers that are arriving at the same time. Default: no limit. */
  readonly maxArriving?: number;
  /** The timeout of one request, from when it is sent, ms. */
  readonly timeoutMs: number;
  /** Whether callers see the service's id of a failed request. Default: no. */
  readonly tellsRequestIds?: boolean | undefined;
  readonly clock: Clock;
  readonly telemetry: UpstreamTelemetry;
}

/** Receives what happens to requests to the service. */
export interface UpstreamTelemetry extends BreakerTelemetry {
  /** Called for each attempt. */
  sending(cause: Cause | undefined): ReportedRequest;
  /** Called for each failure after which a request is sent again. @param attempt how often it was sent so far */
  retrying(cause: Cause | undefined, code: unknown, attempt: number): void;
}

export interface ReportedRequest {
  /** Headers to send with the request. */
  readonly headers: Readonly<Record<string, string>>;
  /** @param requestId the service's own id of the request */
  answered(requestId: string | undefined): void;
  /** Called for each GraphQL answer, before `ended`. */
  read(how: ReadAs): void;
  /** @param error why the answer was missing or unusable; contains nothing that the service wrote */
  ended(outcome: UpstreamOutcome, error?: GraphQLError): void;
}

/** A label of metrics. `left`: all callers of the request left. */
export type UpstreamOutcome = 'ok' | 'graphql_error' | 'left' | ErrorCode | 'OTHER';

export const noTelemetry: UpstreamTelemetry = {
  sending: () => ({ headers: {}, answered: () => {}, read: () => {}, ended: () => {} }),
  retrying: () => {},
  breakerOpened: () => {},
  breakerClosed: () => {},
};

const CONNECT_TIMEOUT_MS = 10_000;

/** Opens the HTTP connections to the service. */
export function openConnections(parts: ConnectionsParts) {
  const { agent, timeoutMs, clock, telemetry, tellsRequestIds } = parts;
  const { origin, pathname: path } = new URL(`${parts.baseUrl}/graphql`);
  const pool = createPool(origin, parts);
  const all = new ByteLimit(parts.maxArriving ?? Infinity);
  const limits = { each: MAX_RESPONSE_BYTES, all };
  // One at a time: while it is read, an answer takes several times its size.
  const largeAnswers = new Slots(() => 1);

  /** One request in flight: collects its answer, and ends the request at its timeout or when its callers have left. */
  class SentRequest implements Dispatcher.DispatchHandler {
    readonly #request: OutgoingRequest;
    readonly #sender: Sender;
    readonly #token: string;
    readonly #reported: ReportedRequest;
    readonly #answer = Promise.withResolvers<UpstreamAnswer>();
    readonly #body: BodyParts;
    readonly #timer: NodeJS.Timeout;
    readonly #leave = () => {
      this.#fail(this.#sender.signal.reason);
      this.#controller?.abort(ABORTED);
    };
    #controller: Dispatcher.DispatchController | undefined;
    #isOver = false;
    #status = 0;
    #headers: HttpAnswer['headers'] = {};
    #requestId: string | undefined;

    constructor(
      request: OutgoingRequest,
      sender: Sender,
      token: string,
      reported: ReportedRequest,
    ) {
      this.#request = request;
      this.#sender = sender;
      this.#token = token;
      this.#reported = reported;
      // A mutation has already been executed when its answer arrives, so its answer is not refused.
      this.#body = new BodyParts(request.kind === 'mutation' ? { each: limits.each } : limits);
      this.#timer = setTimeout(() => {
        this.#settle(timedOut(timeoutMs));
        this.#controller?.abort(ABORTED);
      }, timeoutMs);
      sender.signal.addEventListener('abort', this.#leave);
    }

    get answer(): Promise<UpstreamAnswer> {
      return this.#answer.promise;
    }

    onRequestStart(controller: Dispatcher.DispatchController): void {
      this.#controller = controller;
      if (this.#isOver) controller.abort(ABORTED);
    }

    onResponseStart(
      _controller: Dispatcher.DispatchController,
      status: number,
      headers: HttpAnswer['headers'],
    ): void {
      this.#status = status;
      this.#headers = headers;
      this.#requestId = requestIdOfService(headers, this.#token);
      this.#reported.answered(this.#requestId);
      if (status === 429 || status >= 500) this.#sender.onPressure?.();
    }

    onResponseData(controller: Dispatcher.DispatchController, part: Buffer): void {
      if (this.#isOver) return;
      try {
        this.#body.add(part);
      } catch (error) {
        const answer =
          error instanceof BodiesTooLarge ? tooMuchArriving() : atOnce(this.#read(undefined));
        this.#settle(answer);
        controller.abort(ABORTED);
      }
    }

    onResponseEnd(): void {
      // All callers have left: do not read the answer.
      if (this.#isOver) return;
      clearTimeout(this.#timer);
      const reading = this.#read(this.#body.compactBytes());
      try {
        const { done, value } = beginning(reading, clock);
        if (done) this.#settle(value);
        else void this.#goOn(reading);
      } catch (error) {
        this.#fail(error);
      }
    }

    /** Reads the rest of a large answer, unless its callers leave. */
    async #goOn(reading: Pausable<UpstreamAnswer>): Promise<void> {
      const { signal } = this.#sender;
      try {
        this.#settle(await largeAnswers.run(() => inTurns(reading, signal), { signal }));
      } catch (error) {
        if (!this.#isOver) this.#fail(error);
      }
    }

    onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
      this.#settle(unreachable(error));
    }

    #read(body: Buffer | undefined): Pausable<UpstreamAnswer> {
      const answer = { status: this.#status, headers: this.#headers, body };
      return readResponse(answer, { token: this.#token, now: clock.now, request: this.#request });
    }

    #settle(answer: UpstreamAnswer): void {
      if (this.#isOver) return;
      this.#end();
      if (answer.kind === 'result') {
        this.#reported.read(answer.readAs);
        this.#reported.ended(answer.hasErrors ? 'graphql_error' : 'ok');
        this.#answer.resolve(answer);
        return;
      }
      if (answer.kind === 'unauthorized') this.#reported.ended('UPSTREAM_UNAUTHORIZED');
      else this.#reported.ended(knownCode(answer.error.extensions['code']), answer.error);
      this.#answer.resolve(tellsRequestIds ? { ...answer, requestId: this.#requestId } : answer);
    }

    /** Ends the request because all callers have left, or the reader of the answer failed. */
    #fail(reason: unknown): void {
      this.#end();
      this.#reported.ended('left');
      this.#answer.reject(reason);
    }

    #end(): void {
      this.#isOver = true;
      this.#body.drop();
      clearTimeout(this.#timer);
      this.#sender.signal.removeEventListener('abort', this.#leave);
    }
  }

  return {
    /**
     * Sends a request once.
     *
     * @throws the abort reason of the sender's signal
     */
    post: (request: OutgoingRequest, sender: Sender, token: string): Promise<UpstreamAnswer> => {
      // All callers may have left while the token was renewed.
      sender.signal.throwIfAborted();
      const reported = telemetry.sending(sender.cause);
      const sent = new SentRequest(request, sender, token, reported);
      const headers = {
        ...reported.headers,
        'content-type': 'application/json',
        accept: 'application/json',
        // Without this header any coding would be allowed (RFC 9110, section 12.5.3).
        'accept-encoding': 'identity',
        authorization: `Bearer ${token}`,
        ...agentHeaders(agent),
      };
      pool.dispatch({ origin, path, method: 'POST', headers, body: request.body }, sent);
      return sent.answer;
    },
    close: () => pool.destroy(),
  };
}

function createPool(origin: string, { proxy, concurrency, timeoutMs }: ConnectionsParts) {
  const options = {
    connections: concurrency,
    pipelining: 1,
    allowH2: false,
    // The timer of each request covers all of it.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: Math.min(CONNECT_TIMEOUT_MS, timeoutMs) },
  };
  return proxy === undefined
    ? new Pool(origin, options)
    : new ProxyAgent({ ...options, uri: proxy, proxyTunnel: true });
}

/** Created once: a new error and its stack would cost more than the request that it ends. */
const ABORTED = new DOMException('The request was aborted.', 'AbortError');

function tooMuchArriving(): UpstreamFailure {
  return {
    kind: 'failure',
    isTemporary: false,
    error: codedError(
      'RATE_LIMITED',
      'The answers of the recruiting service that are arriving are too large together. ' +
        `Try again in ${RETRY_SECONDS} s, and request fewer records or fields at a time.`,
      { extensions: { retryAfter: RETRY_SECONDS } },
    ),
  };
}

const RETRY_SECONDS = 5;

function timedOut(timeoutMs: number): UpstreamFailure {
  return {
    kind: 'failure',
    isTemporary: false,
    error: codedError(
      'UPSTREAM_TIMEOUT',
      `The recruiting service did not answer within ${timeoutMs} ms. ` +
        'Request fewer records or fields at a time, or try again later.',
      { cause: new PerhapsTooBig(false) },
    ),
  };
}

/** The codes that undici reports for requests that `close` ended. */
const CLOSED = new Set(['UND_ERR_DESTROYED', 'UND_ERR_CLOSED']);

/** @param cause for the log only, because it may contain addresses */
function unreachable(cause: Error & { readonly code?: unknown }): UpstreamFailure {
  const reason = typeof cause.code === 'string' ? cause.code : cause.name;
  const isClosed = CLOSED.has(reason);
  return {
    kind: 'failure',
    isTemporary: !isClosed,
    error: codedError(
      'UPSTREAM_UNREACHABLE',
      isClosed
        ? 'The gateway is stopping. Send the request again.'
        : `The recruiting service cannot be reached (${reason}). Try again later.`,
      { cause },
    ),
  };
}
