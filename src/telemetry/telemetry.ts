import type { Logger } from 'pino';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { EngineTelemetry } from '../engine/shared.ts';
import { TROUBLES, type TokenHealth } from '../tokens/health.ts';
import type { UpstreamTelemetry } from '../upstream/telemetry.ts';
import type { Waiting } from '../upstream/turns.ts';
import { requestTelemetry } from './requests.ts';

export type Telemetry = ReturnType<typeof createTelemetry>;

/**
 * The metrics of a gateway, and the interfaces through which its parts report to the log and to metrics. Each part
 * gets its interface once, at the start; its metrics exist only from then on. Reports contain no personal data and no
 * secrets, and callers cannot decide the number of series.
 */
export function createTelemetry({ version, log }: { version: string; log: Logger }) {
  const registry = new Registry();
  new Gauge({
    name: 'recruiting_build_info',
    help: 'Always 1. The label is the version of the gateway.',
    labelNames: ['version'],
    registers: [registry],
  }).set({ version }, 1);
  return {
    metrics: registry,
    requests: () => requestTelemetry(log, registry),
    upstream: (waiting: () => Waiting) => upstreamTelemetry(waiting, log, registry),
    /** @param load the present numbers of drains and of bytes */
    reading: (load: ReadingLoad) => readingTelemetry(load, registry),
    tokens: (health: () => TokenHealth) => tokenTelemetry(health, registry),
  };
}

/** Reports requests to the service, except token exchanges. They carry the id of the caller's request. */
function upstreamTelemetry(
  waiting: () => Waiting,
  log: Logger,
  registry: Registry,
): UpstreamTelemetry {
  const requests = new Counter({
    name: 'recruiting_upstream_requests_total',
    help: 'Requests sent to the service, each attempt, by outcome: ok, graphql_error, left (all callers left), or an error code.',
    labelNames: ['outcome'],
    registers: [registry],
  });
  const duration = new Histogram({
    name: 'recruiting_upstream_request_duration_seconds',
    help: 'From sending a request to the end of its answer, each attempt, without waiting for a turn.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: [registry],
  });
  gauges(registry, {
    recruiting_upstream_requests_waiting: [
      'Requests that wait for their turn: at most UPSTREAM_CONCURRENCY have one.',
      waiting,
      'priority',
    ],
  });
  const breaker = new Gauge({
    name: 'recruiting_upstream_breaker_open',
    help: '1 while the circuit breaker is open: the service is down, and requests are refused except for occasional probes.',
    registers: [registry],
  });
  return {
    sending: (cause) => {
      const begun = performance.now();
      if (cause) cause.upstreamRequests += 1;
      return (outcome, err) => {
        requests.inc({ outcome });
        duration.observe((performance.now() - begun) / 1000);
        if (err) log.debug({ requestId: cause?.requestId, err }, NO_ANSWER);
      };
    },
    breakerOpened: (error) => {
      breaker.set(1);
      log.warn(
        { code: error.extensions['code'], err: error },
        'the recruiting service is down: the circuit breaker is open, and requests are refused until it answers',
      );
    },
    breakerClosed: (downMs) => {
      breaker.set(0);
      log.info(
        { seconds: Math.round(downMs / 1000) },
        'the recruiting service answers again: the circuit breaker is closed',
      );
    },
  };
}

const NO_ANSWER = 'a request to the service got no usable answer';

interface ReadingLoad {
  readonly drains: () => { readonly running: number; readonly waiting: number };
  readonly answerBytes: () => number;
  readonly requestBytes: () => number;
}

/** Reports pages, drains and memory. The pages of a walk belong to the caller's request that began it. */
function readingTelemetry(
  { drains, answerBytes, requestBytes }: ReadingLoad,
  registry: Registry,
): EngineTelemetry {
  gauges(registry, {
    recruiting_drains_running: ['Running drains, at most MAX_DRAINS.', () => drains().running],
    recruiting_drains_waiting: ['Drains that wait for a slot.', () => drains().waiting],
    recruiting_answer_bytes: [
      'Bytes of answers that are held until they are sent, at most ANSWER_BYTES.',
      answerBytes,
    ],
    recruiting_request_bytes: [
      'Bytes of the bodies of requests, until they are answered.',
      requestBytes,
    ],
  });
  const pages = new Counter({
    name: 'recruiting_pages_read_total',
    help: 'Pages of lists that the gateway has requested for fields of its own. Those that callers page through themselves are upstream requests only.',
    registers: [registry],
  });
  return {
    pageRead: (cause) => {
      pages.inc();
      if (cause) cause.pages += 1;
    },
  };
}

/**
 * Reports the state of the token set, and the exchanges of its refresh token.
 *
 * @returns a function that reports the outcome of an exchange
 */
function tokenTelemetry(health: () => TokenHealth, registry: Registry) {
  gauges(registry, {
    recruiting_access_token_seconds_left: [
      'Seconds until the access token expires. Absent without tokens.',
      () => health().accessSecondsLeft,
    ],
    recruiting_refresh_token_seconds_left: [
      'Seconds until the refresh token ends, 0 when the tokens are lost. Absent without tokens.',
      () => health().refreshSecondsLeft,
    ],
    recruiting_token_trouble: [
      '1 while the tokens have this trouble, which the log and tokens status explain.',
      () => {
        const { troubles } = health();
        return Object.fromEntries(TROUBLES.map((each) => [each, troubles.includes(each) ? 1 : 0]));
      },
      'trouble',
    ],
  });
  const exchanges = new Counter({
    name: 'recruiting_token_exchanges_total',
    help: 'Exchanges of the refresh token by this process, by outcome: granted, invalid-grant, unsent (certainly nothing was processed) or unclear.',
    labelNames: ['outcome'],
    registers: [registry],
  });
  // A series that begins with 1 does not show an increase to alerts.
  for (const outcome of ['granted', 'invalid-grant', 'unsent', 'unclear']) {
    exchanges.inc({ outcome }, 0);
  }
  return (outcome: string): void => exchanges.inc({ outcome });
}

type GaugeEntry = readonly [
  help: string,
  value: () => number | undefined | Readonly<Record<string, number>>,
  label?: string,
];

/**
 * @param entries by name. A value that is undefined is unknown, which is not 0: its series is left out. Several values
 *   are those of a label
 */
function gauges(registry: Registry, entries: Readonly<Record<string, GaugeEntry>>): void {
  for (const [name, [help, value, label]] of Object.entries(entries)) {
    const gauge = new Gauge({
      name,
      help,
      labelNames: label === undefined ? [] : [label],
      registers: [],
      collect() {
        const now = value();
        if (now === undefined) this.remove();
        else if (typeof now === 'number') this.set(now);
        else for (const [of, count] of Object.entries(now)) this.set({ [label!]: of }, count);
      },
    });
    registry.registerMetric(gauge);
  }
}
