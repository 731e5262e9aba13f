import type { Agent, Dispatcher } from 'undici';
import type { Clock } from '../clock.ts';
import { codedError, knownCode } from '../errors.ts';
import { BodyParts } from '../memory/byte-limit.ts';
import type { Post, TokenRefusal } from './authorize.ts';
import { LARGEST_ANSWER, readAnswer, type HttpAnswer } from './read-answer.ts';
import type { Failure, OutgoingRequest, Outcome, Sender } from './request.ts';
import type { ReportedRequest, UpstreamTelemetry } from './telemetry.ts';

export interface ConnectionsParts {
  readonly baseUrl: string;
  /** The value of `User-Agent` and `Api-User-Agent`. */
  readonly agent: string;
  /** Opens the connections, through a proxy if there is one. */
  readonly connect: (options: Agent.Options) => Dispatcher;
  /** The most requests in flight, each on a separate connection. */
  readonly concurrency: number;
  /** The timeout of one request, from when it is sent, ms. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly telemetry: Pick<UpstreamTelemetry, 'sending'>;
}

const CONNECT_TIMEOUT_MS = 10_000;

/** Opens the HTTP connections to the service. */
export function openConnections(parts: ConnectionsParts) {
  const { agent, concurrency, timeoutMs, telemetry } = parts;
  const { origin, pathname: path } = new URL(`${parts.baseUrl}/graphql`);
  const http = parts.connect({
    connections: concurrency,
    pipelining: 1,
    // The timer of each request covers all of it.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: Math.min(CONNECT_TIMEOUT_MS, timeoutMs) },
  });

  const post: Post = (request, sender, token) => {
    // All callers may have left while the token was renewed.
    sender.signal.throwIfAborted();
    const reported = telemetry.sending(sender.cause);
    const inFlight = new RequestInFlight(parts, { request, sender, token, reported });
    const headers = {
      ...reported.headers,
      'content-type': 'application/json',
      accept: 'application/json',
      // Without this header any coding would be allowed (RFC 9110, section 12.5.3).
      'accept-encoding': 'identity',
      authorization: `Bearer ${token}`,
      'user-agent': agent,
      // The service documents it (interface, 4.3).
      'api-user-agent': agent,
    };
    http.dispatch({ origin, path, method: 'POST', headers, body: request.body }, inFlight);
    return inFlight.outcome;
  };

  return { post, close: () => http.destroy() };
}

interface Sent {
  readonly request: OutgoingRequest;
  readonly sender: Sender;
  readonly token: string;
  readonly reported: ReportedRequest;
}

/** One request in flight: collects its answer, and ends the request at its timeout or when its callers have left. */
class RequestInFlight implements Dispatcher.DispatchHandler {
  readonly #parts: ConnectionsParts;
  readonly #sent: Sent;
  readonly #body = new BodyParts({ each: LARGEST_ANSWER });
  readonly #stopTimer: () => void;
  readonly #ending = Promise.withResolvers<Outcome | TokenRefusal>();
  #controller: Dispatcher.DispatchController | undefined;
  #isOver = false;
  #status = 0;
  #headers: HttpAnswer['headers'] = {};

  constructor(parts: ConnectionsParts, sent: Sent) {
    this.#parts = parts;
    this.#sent = sent;
    const { timeoutMs } = parts;
    this.#stopTimer = parts.clock.timer(timeoutMs, () => this.#stop(timedOut(timeoutMs)));
    sent.sender.signal.addEventListener('abort', this.#leave);
  }

  get outcome(): Promise<Outcome | TokenRefusal> {
    return this.#ending.promise;
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
  }

  onResponseData(_controller: Dispatcher.DispatchController, part: Buffer): void {
    if (this.#isOver) return;
    try {
      this.#body.add(part);
    } catch {
      // It is larger than the largest.
      this.#stop(this.#read(undefined));
    }
  }

  onResponseEnd(): void {
    if (!this.#isOver) this.#settle(this.#read(this.#body.bytes()));
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#settle(unreachable(error));
  }

  #read(body: Buffer | undefined): Outcome | TokenRefusal {
    const answer = { status: this.#status, headers: this.#headers, body };
    return readAnswer(answer, this.#sent.token, this.#parts.clock.now());
  }

  #settle(outcome: Outcome | TokenRefusal): void {
    if (this.#isOver) return;
    this.#end();
    const { reported } = this.#sent;
    if (outcome.kind === 'answer') {
      reported.ended(outcome.hasErrors ? 'graphql_error' : 'ok');
    } else {
      const { error } = outcome.kind === 'failure' ? outcome : outcome.failure;
      reported.ended(knownCode(error.extensions['code']), error);
    }
    this.#ending.resolve(outcome);
  }

  #stop(outcome: Outcome | TokenRefusal): void {
    this.#settle(outcome);
    this.#controller?.abort(ABORTED);
  }

  readonly #leave = (): void => {
    const { sender, reported } = this.#sent;
    this.#end();
    reported.ended('left');
    this.#ending.reject(sender.signal.reason);
    this.#controller?.abort(ABORTED);
  };

  #end(): void {
    this.#isOver = true;
    this.#body.drop();
    this.#stopTimer();
    this.#sent.sender.signal.removeEventListener('abort', this.#leave);
  }
}

/** Created once: a new error and its stack would cost more than the request that it ends. */
const ABORTED = new DOMException('The request was aborted.', 'AbortError');

function timedOut(timeoutMs: number): Failure {
  return {
    kind: 'failure',
    error: codedError(
      'UPSTREAM_TIMEOUT',
      `The recruiting service did not answer within ${timeoutMs} ms. ` +
        'Request fewer records or fields at a time, or try again later.',
      { extensions: { limit: 'UPSTREAM_TIMEOUT_MS' } },
    ),
  };
}

/** The codes that undici reports for requests that `close` ended. */
const CLOSED = new Set(['UND_ERR_DESTROYED', 'UND_ERR_CLOSED']);

/** @param cause for the log only, because it may contain addresses */
function unreachable(cause: Error & { readonly code?: unknown }): Failure {
  const reason = typeof cause.code === 'string' ? cause.code : cause.name;
  return {
    kind: 'failure',
    isTemporary: !CLOSED.has(reason),
    error: codedError(
      'UPSTREAM_UNREACHABLE',
      `The recruiting service cannot be reached (${reason}). Try again later.`,
      { cause },
    ),
  };
}
