import type { Logger } from 'pino';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { systemClock } from '../clock.ts';
import { configWarnings, readConfig, type Config } from '../config.ts';
import type { CheckedConfig } from '../config/gateway-config.ts';
import type { Gateway } from '../gateway.ts';
import { listen } from '../http/listen.ts';
import { adminHandler } from '../http/admin.ts';
import { adminHosts } from '../http/hosts.ts';
import { openGateway, openUpstream, type CloseAtEnd, type Setup } from '../setup/open-gateway.ts';
import { createLog } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/telemetry.ts';
import { loadGatewayConfig } from './gateway-config-file.ts';
import { stopped, type Terminal } from './terminal.ts';

interface Process extends Setup {
  readonly machine: Terminal;
}

/** What answers requests. It ends when the process closes its parts. */
interface Service {
  readonly url: string;
  /** From now on `/ready` replies 503, and each answer is the last one of its connection. */
  prepareStop(): void;
  stopRefreshing(): void;
}

/** Serves the gateway until the process is asked to stop. */
export async function serve(terminal: Terminal): Promise<void> {
  const config = readConfig(terminal.env, terminal.readFile);
  const log = await createLog({
    level: config.logLevel,
    isJson: config.production,
    colors: terminal.stdout.isTTY === true,
    destination: terminal.stdout,
  });
  terminal.onExit(() => log.flush());
  await using parts = new AsyncDisposableStack();
  const closeAtEnd: CloseAtEnd = (part) => parts.adopt(part, () => part.close());
  for (const warning of configWarnings(config)) log.warn(warning);
  const added = await loadedConfig(config, log);
  const process: Process = { config, added, machine: terminal, log, closeAtEnd };
  const upstream = await openUpstream(process);
  const gateway = await openGateway(upstream, process);
  // CPU, memory, garbage collection and event loop lag, as Prometheus clients report them for every process.
  const ofProcess = new Registry();
  collectDefaultMetrics({ register: ofProcess });
  await listenAdmin(
    {
      ...gateway.metrics,
      text: async () => (await gateway.metrics.text()) + (await ofProcess.metrics()),
    },
    process,
  );
  const service = await listenFor(gateway, process);
  announce(service.url, upstream.settings.recruitingUrl, process);
  await stop(service, process);
}

/** Waits until the process is asked to stop, and then as long as requests are still accepted. */
async function stop(service: Service, { config, machine, log }: Process): Promise<void> {
  await stopped(machine.stop);
  service.prepareStop();
  const ms = config.shutdownDelayMs;
  if (ms > 0) {
    // Balancers go on sending requests until `/ready` has failed.
    log.info({ ms }, 'asked to stop: /ready fails, and requests are still accepted for a while');
    // It rejects when a second signal cuts it short.
    await systemClock.sleep(ms, machine.hurry).catch(() => undefined);
  }
  log.info('stopping: requests in flight have 10 s to finish, and a token pair is saved first');
  service.stopRefreshing();
}

/** Reports the addresses: as a log line among JSON lines, otherwise as links to open. */
function announce(
  url: string,
  upstream: string,
  { config, log, machine: { stdout } }: Process,
): void {
  const isSandbox = config.recruitingUrl === undefined;
  if (config.production) {
    log.info({ url: `${url}/graphql`, upstream }, 'serving');
    return;
  }
  stdout.write(`
${isSandbox ? SANDBOX_NOTICE : `  Upstream   ${upstream}\n`}
  ${config.graphiql ? 'GraphiQL ' : 'GraphQL  '}  ${url}/graphql
  Health     ${url}/health   ${url}/ready

`);
}

const MADE_UP =
  'The people served here are made up. Set RECRUITING_URL to serve the real recruiting service.';

const SANDBOX_NOTICE = `  ***  SANDBOX  ***  ${MADE_UP.replace('. ', '.\n  ')}
`;

/** Loads what a company adds, and logs the name of the file. */
async function loadedConfig(config: Config, log: Logger): Promise<CheckedConfig | undefined> {
  const added = await loadGatewayConfig(config, (risk) => log.warn(risk));
  if (added) log.info({ file: added.source }, 'configuration file loaded');
  return added;
}

/** Answers requests at HOST and PORT. */
async function listenFor(gateway: Gateway, { config, log, closeAtEnd }: Process): Promise<Service> {
  const server = closeAtEnd(
    await listen(gateway.handler, {
      host: config.host,
      port: config.port,
      onDropped: onceInAWhile((dropped) =>
        log.warn({ dropped }, 'new connections were closed, because too many are open'),
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

const ADMIN_CONNECTIONS = 64;

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
 * Serves `/metrics` at the admin address. Only warns if the default address is taken.
 *
 * @throws Error with a message for the operator
 */
async function listenAdmin(metrics: Metrics, { config, log, closeAtEnd }: Process): Promise<void> {
  const { adminHost: host, adminPort: port, isAdminPortSet, allowedHosts } = config;
  try {
    const variables = ['ADMIN_HOST', 'ADMIN_PORT'] as const;
    const isOurHost = adminHosts({ host, allowedHosts });
    const handler = adminHandler(metrics, isOurHost, log);
    const address = { host, port, variables };
    const admin = closeAtEnd(
      await listen(handler, { ...address, maxConnections: ADMIN_CONNECTIONS }),
    );
    log.info({ url: `${admin.url}/metrics` }, 'metrics');
  } catch (error) {
    // The port is the default one: a second gateway on a developer's machine need not fail for it.
    if (isAdminPortSet) throw error;
    log.warn(`Metrics are not served: ${(error as Error).message}`);
  }
}
