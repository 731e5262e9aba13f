import { randomUUID } from 'node:crypto';
import type { GraphQLError } from 'graphql';
import type { Logger } from 'pino';
import type { Cause } from '../cause.ts';
import { knownCode } from '../errors.ts';
import { isKnownPath } from '../http/addresses.ts';
import {
  isProbe,
  outcomeOfStatus,
  type Exchange,
  type ExchangeTelemetry,
  type Outcome,
} from '../http/exchange.ts';
import type { EngineTelemetry } from '../engine/shared.ts';
import { TROUBLES, type TokenHealth } from '../tokens/health.ts';
import type { ReportedRequest, UpstreamOutcome, UpstreamTelemetry } from '../upstream/telemetry.ts';
import { createMetricRegistry, type MetricRegistry, type Metrics } from './metrics.ts';

interface TelemetryParts {
  readonly version: string;
  readonly log: Logger;
}

interface Reporting {
  readonly metrics: MetricRegistry;
  readonly log: Logger;
}

export type Telemetry = ReturnType<typeof createTelemetry>;

/**
 * The metrics of a process, and the interfaces through which its parts report to the log and to metrics. Each part
 * gets its interface once, at the start; its metrics exist only from then on. Reports contain no personal data and no
 * secrets, and callers cannot decide the number of series.
 */
export function createTelemetry({ version, log }: TelemetryParts) {
  const metrics = createMetricRegistry();
  const reporting: Reporting = { metrics, log };
  metrics.gauge({
    name: 'recruiting_build_info',
    help: 'Always 1. The label is the version of the gateway.',
    labelNames: ['version'],
    collect: () => [[1, version]],
  });
  return {
    metrics: metrics as Metrics,
    requests: () => requestTelemetry(reporting),
    upstream: (load: () => UpstreamLoad) => upstreamTelemetry(reporting, load),
    reading: (load: ReadingLoad) => readingTelemetry(reporting, load),
    /** @param health returns undefined while there are no tokens */
    tokens: (health: () => TokenHealth | undefined) => tokenTelemetry(reporting, health),
  };
}

/** Identifies a caller's request in the telemetry of everything that is done for it. */
interface RequestCause extends Cause {
  readonly cost: {
    upstreamRequests: number;
    pages: number;
    /** The service's own id of the last failed request to it. */
    failedServiceRequest: string | undefined;
  };
  /** When it began, by `performance.now()`. */
  readonly begun: number;
  /** Read at the start: a stream drops its headers. */
  readonly client: ReturnType<typeof clientOf>;
}

/** Narrows the type: all causes are created in this file. Returns undefined for work that no caller requested. */
function requestCause(cause: Cause | undefined): RequestCause | undefined {
  return cause as RequestCause | undefined;
}

/**
 * Gives each request of a caller an id, and reports it when its answer, or the last part of a stream, is
 * sent. Probes are frequent, so they are logged only at the level debug, and not counted. Query strings, documents and
 * variables may name people, so they are never read.
 */
function requestTelemetry({ metrics, log }: Reporting): ExchangeTelemetry {
  const requests = metrics.counter({
    name: 'recruiting_requests_total',
    // The names of other operations than trusted ones are empty.
    help: 'Requests of callers, by the name of the trusted operation and the code of the first error (OK without an error).',
    labelNames: ['operation', 'code'],
  });
  const clients = clientLabels();
  const requestsOfClients = metrics.counter({
    name: 'recruiting_client_requests_total',
    help: 'Executed requests, by the name that the client sent and the name of the trusted operation.',
    labelNames: ['client', 'operation'],
  });
  const duration = metrics.histogram({
    name: 'recruiting_request_duration_seconds',
    help: 'From the arrival of a request to the last byte of its answer.',
    labelNames: ['type'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  });
  return {
    run: (exchange, work) => {
      const begun = performance.now();
      const requestId = requestIdOf(exchange);
      exchange.requestId = requestId;
      exchange.replyHeaders['x-request-id'] = requestId;
      const cost = { upstreamRequests: 0, pages: 0, failedServiceRequest: undefined };
      const client = clientOf(exchange);
      const cause: RequestCause = { requestId, cost, begun, client };
      exchange.cause = cause;
      return work();
    },
    ended: (exchange, status) => {
      const cause = requestCause(exchange.cause)!;
      const ms = performance.now() - cause.begun;
      const ended: Ended = { cause, status, ms, outcome: outcomeOf(exchange, status) };
      writeLine(log, exchange, ended);
      if (isProbe(exchange.path)) return;
      requests(1, exchange.trustedName, ended.outcome);
      // A refused request may come from anyone, and could use up the client names of this metric.
      if (exchange.operationType) {
        requestsOfClients(1, clients(cause.client.name), exchange.trustedName);
      }
      duration(ms / 1000, exchange.operationType ?? 'none');
    },
  };
}

/** Short, and without characters that have a meaning in logs, terminals or headers. */
const HARMLESS = /^[A-Za-z0-9._-]{1,64}$/;

/** Returns the id that the caller sent if it is harmless, and otherwise a new one. */
function requestIdOf(exchange: Exchange): string {
  const sent = exchange.header('x-request-id');
  return sent !== undefined && HARMLESS.test(sent) ? sent : randomUUID();
}

/** The usual form of an application's name or version. */
const CLIENT = /^[A-Za-z0-9][A-Za-z0-9 ._@/+-]{0,63}$/;

/** Returns the name that the client sends, if it is a short name. */
function clientOf(exchange: Exchange) {
  const sent = (part: 'name' | 'version') => {
    const text =
      exchange.header(`graphql-client-${part}`) ?? exchange.header(`apollographql-client-${part}`);
    return text !== undefined && CLIENT.test(text) ? text : undefined;
  };
  return { name: sent('name'), version: sent('version') };
}

/** The most clients with their own series in each process; all others share one. */
const MAX_CLIENTS = 100;

/** Returns the function that limits the number of client names: they come from callers. */
function clientLabels() {
  const names = new Set<string>();
  return (client = ''): string => {
    if (client === '' || names.has(client)) return client;
    if (names.size >= MAX_CLIENTS) return 'other';
    names.add(client);
    return client;
  };
}

interface Ended {
  readonly cause: RequestCause;
  readonly status: number | undefined;
  readonly ms: number;
  readonly outcome: Outcome;
}

function outcomeOf(exchange: Exchange, status: number | undefined): Outcome {
  if (exchange.hasLeft) return 'LEFT';
  return exchange.outcome ?? (exchange.operationType ? 'OK' : outcomeOfStatus(status ?? 500));
}

function writeLine(log: Logger, exchange: Exchange, { cause, status, ms, outcome }: Ended): void {
  const level = isProbe(exchange.path) ? 'debug' : 'info';
  if (!log.isLevelEnabled(level)) return;
  const { requestId, method, path, operationType, trustedName, caller } = exchange;
  log[level](
    {
      requestId,
      method,
      // An unknown path may contain a key or name a person.
      path: isKnownPath(path) ? path : undefined,
      status,
      ms: Math.round(ms * 10) / 10,
      operationType,
      operation: trustedName || undefined,
      code: outcome === 'OK' ? undefined : outcome,
      caller: keyName(caller?.name),
      client: cause.client.name,
      clientVersion: cause.client.version,
      upstreamRequests: cause.cost.upstreamRequests || undefined,
      pages: cause.cost.pages || undefined,
      serviceRequestId: cause.cost.failedServiceRequest,
    },
    'request',
  );
}

/**
 * Returns the name of an API key, which the operator chose; undefined for the subject of a token, which may be a
 * person.
 */
function keyName(caller: string | undefined): string | undefined {
  return caller?.startsWith('key:') ? caller.slice('key:'.length) : undefined;
}

interface UpstreamLoad {
  readonly inFlight: number;
  readonly waiting: Readonly<Record<'interactive' | 'drain', number>>;
}

/** Reports requests to the service, except token exchanges. They carry the id of the caller's request. */
function upstreamTelemetry(
  { metrics, log }: Reporting,
  load: () => UpstreamLoad,
): UpstreamTelemetry {
  const requests = metrics.counter({
    name: 'recruiting_upstream_requests_total',
    help: 'Requests sent to the service, each attempt, by outcome: ok, graphql_error, left (all callers left), or an error code.',
    labelNames: ['outcome'],
  });
  const retries = metrics.counter({
    name: 'recruiting_upstream_retries_total',
    help: 'Requests that were sent again, by the error code of the attempt before.',
    labelNames: ['code'],
  });
  const duration = metrics.histogram({
    name: 'recruiting_upstream_request_duration_seconds',
    help: 'From sending a request to the end of its answer, each attempt, without waiting for a turn.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  });
  metrics.gauge({
    name: 'recruiting_upstream_requests_in_flight',
    help: 'Requests that have their turn, at most UPSTREAM_CONCURRENCY.',
    collect: () => load().inFlight,
  });
  metrics.gauge({
    name: 'recruiting_upstream_requests_waiting',
    help: 'Requests that wait for their turn.',
    labelNames: ['priority'],
    collect: () => Object.entries(load().waiting).map(([priority, count]) => [count, priority]),
  });
  let isOpen = false;
  metrics.gauge({
    name: 'recruiting_upstream_breaker_open',
    help: '1 while the circuit breaker is open: the service is down, and requests are refused except for occasional probes.',
    collect: () => (isOpen ? 1 : 0),
  });

  class Sending implements ReportedRequest {
    readonly headers: Readonly<Record<string, string>>;
    readonly #begun = performance.now();
    readonly #cause: RequestCause | undefined;
    #requestId: string | undefined;

    constructor(cause: RequestCause | undefined) {
      this.#cause = cause;
      this.headers = cause ? { 'x-request-id': cause.requestId } : {};
      if (cause) cause.cost.upstreamRequests += 1;
    }

    answered(requestId: string | undefined): void {
      this.#requestId = requestId;
    }

    ended(outcome: UpstreamOutcome, error?: GraphQLError): void {
      requests(1, outcome);
      duration((performance.now() - this.#begun) / 1000);
      const hasFailed = outcome !== 'ok' && outcome !== 'left';
      if (hasFailed && this.#requestId !== undefined) this.#noteRequestId(this.#requestId);
      if (!error || !log.isLevelEnabled('debug')) return;
      log.debug(
        { requestId: this.#cause?.requestId, serviceRequestId: this.#requestId, err: error },
        'a request to the service got no usable answer',
      );
    }

    #noteRequestId(id: string): void {
      if (this.#cause) this.#cause.cost.failedServiceRequest = id;
    }
  }

  return {
    sending: (cause) => new Sending(requestCause(cause)),
    retrying: (cause, code, attempt) => {
      const known = knownCode(code);
      retries(1, known);
      log.debug({ requestId: cause?.requestId, code: known, attempt }, 'sending a request again');
    },
    breakerOpened: (error) => {
      isOpen = true;
      log.warn(
        { code: error.extensions['code'], err: error },
        'the recruiting service is down: the circuit breaker is open, and requests are refused until it answers',
      );
    },
    breakerClosed: (downMs) => {
      isOpen = false;
      log.info(
        { seconds: Math.round(downMs / 1000) },
        'the recruiting service answers again: the circuit breaker is closed',
      );
    },
  };
}

interface ReadingLoad {
  readonly drains: () => { readonly running: number; readonly waiting: number };
  readonly answerBytes: () => number;
  readonly requestBytes: () => number;
}

/** Reports pages, drains and memory. The pages of a walk belong to the caller's request that began it. */
function readingTelemetry(
  { metrics }: Reporting,
  { drains, answerBytes, requestBytes }: ReadingLoad,
): EngineTelemetry {
  metrics.gauge({
    name: 'recruiting_drains_running',
    help: 'Running drains, at most MAX_DRAINS.',
    collect: () => drains().running,
  });
  metrics.gauge({
    name: 'recruiting_drains_waiting',
    help: 'Drains that wait for a slot.',
    collect: () => drains().waiting,
  });
  metrics.gauge({
    name: 'recruiting_answer_bytes',
    help: 'Bytes of answers that are held until they are sent, at most ANSWER_BYTES.',
    collect: answerBytes,
  });
  metrics.gauge({
    name: 'recruiting_request_bytes',
    help: 'Bytes that requests hold until they are answered: headers, bodies and variables.',
    collect: requestBytes,
  });
  const pages = metrics.counter({
    name: 'recruiting_pages_read_total',
    help: 'Pages of lists requested from the service.',
  });
  return {
    pageRead: (cause) => {
      pages(1);
      const cost = requestCause(cause)?.cost;
      if (cost) cost.pages += 1;
    },
  };
}

/**
 * Reports the state of the token set, and the exchanges of its refresh token.
 *
 * @returns a function that reports an exchange: its outcome, and the seconds from the claim to the answer
 */
function tokenTelemetry({ metrics }: Reporting, health: () => TokenHealth | undefined) {
  // Without tokens these are unknown, not 0.
  const gauge = (name: string, help: string, value: (of: TokenHealth) => number | undefined) => {
    const collect = () => {
      const of = health();
      return of && value(of);
    };
    metrics.gauge({ name, help, collect });
  };
  gauge(
    'recruiting_access_token_seconds_left',
    'Seconds until the access token expires.',
    ({ accessSecondsLeft }) => accessSecondsLeft,
  );
  gauge(
    'recruiting_refresh_token_seconds_left',
    'Seconds until the refresh token expires.',
    ({ refreshSecondsLeft }) => refreshSecondsLeft,
  );
  gauge(
    'recruiting_token_generation',
    'Number of imports and refreshes of the token pair so far.',
    ({ generation }) => generation,
  );
  gauge(
    'recruiting_token_age_seconds',
    'Seconds since the token pair was last refreshed.',
    ({ age }) => age,
  );
  metrics.gauge({
    name: 'recruiting_token_trouble',
    help: '1 while the tokens have this problem.',
    labelNames: ['trouble'],
    collect: () => {
      const troubles = health()?.troubles ?? [];
      return TROUBLES.map((trouble) => [troubles.includes(trouble) ? 1 : 0, trouble]);
    },
  });
  const exchanges = metrics.counter({
    name: 'recruiting_token_exchanges_total',
    help: 'Exchanges of the refresh token by this process, by outcome.',
    labelNames: ['outcome'],
  });
  const duration = metrics.histogram({
    name: 'recruiting_token_exchange_seconds',
    help: 'Duration of exchanges, from the claim to the answer.',
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
  });
  return (outcome: string, seconds: number): void => {
    exchanges(1, outcome);
    duration(seconds);
  };
}
