import { getHeapStatistics } from 'node:v8';
import { systemClock } from '../clock.ts';
import type { CheckedConfig } from '../config/gateway-config.ts';
import type { Gateway } from '../gateway.ts';
import { listen } from '../http/listen.ts';
import { adminHosts } from '../http/origin/hosts.ts';
import { adminHandler } from '../http/paths.ts';
import type { Setup } from '../setup/open-gateway.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { loadGatewayConfig } from './gateway-config-file.ts';
import type { Terminal } from './terminal.ts';

/** A process that serves, whether requests are answered in it or in its workers. */
export interface Process extends Setup {
  readonly terminal: Terminal;
}

/** What answers requests, here or in workers. It ends with what this process owns. */
export interface Service {
  readonly url: string;
  /** From now on `/ready` replies 503, and each answer is the last one of its connection. */
  prepareStop(): void;
  stopRefreshing(): void;
}

/**
 * Loads what a company adds, and logs the name of the file.
 *
 * @param isFirst whether this process reports what every worker finds
 */
export async function loadedConfig(
  { config, log }: Process,
  isFirst = true,
): Promise<CheckedConfig | undefined> {
  const added = await loadGatewayConfig(config, (risk) => {
    if (isFirst) log.warn(risk);
  });
  if (added && isFirst) log.info({ file: added.source }, 'configuration file loaded');
  return added;
}

/** Answers requests at HOST and PORT. */
export async function listenFor(
  gateway: Gateway,
  { config, terminal, log, own }: Process,
): Promise<Service> {
  const server = own(
    await listen(gateway.handler, {
      ...config,
      clock: systemClock,
      // With workers, the primary accepts connections, and does little else.
      acceptors: config.workers > 1 ? 1 : ACCEPTORS,
      maxConnections: maxConnections(terminal),
      onDropped: onceInAWhile((dropped) =>
        log.warn(
          { dropped },
          'new connections were closed: too many are open, and all of them wait for answers',
        ),
      ),
      onCut: (requests) =>
        log.warn({ requests }, 'requests were cut off, because they did not end in time'),
    }),
  );
  return {
    url: server.url,
    prepareStop: () => {
      gateway.sayNotReady();
      server.keepNoConnections();
    },
    stopRefreshing: gateway.stopRefreshing,
  };
}

/**
 * How many connections fit: one takes 3 kB of the heap, and up to 16 more while a request arrives. They leave file
 * descriptors to the token store and to the connections to the service.
 */
function maxConnections({ readFile }: Terminal): number {
  const byHeap = Math.floor(getHeapStatistics().heap_size_limit / HEAP_PER_CONNECTION);
  let limits = '';
  try {
    limits = readFile('/proc/self/limits');
  } catch {
    // Only Linux has it.
  }
  const files = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? Infinity);
  return Math.max(MIN_CONNECTIONS, Math.min(byHeap, files - OTHER_FILES));
}

const ACCEPTORS = 16;
const ADMIN_CONNECTIONS = 64;
/** Bytes. */
const HEAP_PER_CONNECTION = 32 * 1024;
const OTHER_FILES = 256;
const MIN_CONNECTIONS = 64;

/** Calls the report at most once a minute, with the number of calls since the last time. */
function onceInAWhile(report: (calls: number) => void): () => void {
  let calls = 0;
  let next = 0;
  return () => {
    calls += 1;
    const now = systemClock.elapsed();
    if (now < next) return;
    report(calls);
    calls = 0;
    next = now + 60_000;
  };
}

/**
 * Serves `/metrics` at its own address. Does not if that address is taken and was not configured.
 *
 * @throws Error with a message for the operator
 */
export async function listenAdmin(metrics: Metrics, { config, log, own }: Process): Promise<void> {
  const { adminHost: host, adminPort: port, adminPortGiven, allowedHosts } = config;
  try {
    const variables = ['ADMIN_HOST', 'ADMIN_PORT'] as const;
    const isOurHost = adminHosts({ host, allowedHosts });
    const handler = adminHandler(metrics, isOurHost, log);
    const address = { host, port, variables };
    const admin = own(await listen(handler, { ...address, maxConnections: ADMIN_CONNECTIONS }));
    log.info({ url: `${admin.url}/metrics` }, 'metrics');
  } catch (error) {
    // The port is the default one: a second gateway on a developer's machine need not fail for it.
    if (adminPortGiven) throw error;
    log.warn(`Metrics are not served: ${(error as Error).message}`);
  }
}
