import { collectDefaultMetrics, Registry } from 'prom-client';
import { systemClock } from '../clock.ts';
import { readConfig } from '../config.ts';
import { listen } from '../http/listen.ts';
import { adminHandler } from '../http/admin.ts';
import { openGateway, type CloseAtEnd, type Setup } from '../setup/open-gateway.ts';
import { createLog } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/telemetry.ts';
import { loadGatewayConfig } from './gateway-config-file.ts';
import { stopped, type Terminal } from './terminal.ts';

/** Serves the gateway until the process is asked to stop. */
export async function serve(_options: object, terminal: Terminal): Promise<void> {
  const config = readConfig(terminal.env, 'server');
  const log = await createLog({
    level: config.logLevel,
    isJson: config.production,
    colors: terminal.stdout.isTTY === true,
    destination: terminal.stdout,
  });
  terminal.onExit(() => log.flush());
  await using parts = new AsyncDisposableStack();
  const closeAtEnd: CloseAtEnd = (part) => parts.adopt(part, () => part.close());
  const added = await loadGatewayConfig(config);
  if (added) log.info({ file: added.source }, 'configuration file loaded');
  const { env, clock } = terminal;
  const setup: Setup = { config, added, env, clock, log, closeAtEnd };
  const gateway = await openGateway(setup);
  await listenAdmin(gateway.metrics, setup);
  const server = closeAtEnd(
    await listen(gateway.handler, {
      host: config.host,
      port: config.port,
      onFull: () => log.warn(TOO_MANY_CONNECTIONS),
    }),
  );
  announce(server.url, setup, terminal);
  await stopped(terminal.stop);
  // From now on `/ready` replies 503, and each answer is the last one of its connection.
  gateway.sayNotReady();
  server.keepNoConnections();
  const ms = config.shutdownDelayMs;
  if (ms > 0) {
    // Balancers go on sending requests until `/ready` has failed.
    log.info({ ms }, 'asked to stop: /ready fails, and requests are still accepted for a while');
    await systemClock.sleep(ms);
  }
  log.info('stopping: requests in flight have 10 s to finish, and a token pair is saved first');
  gateway.stopRefreshing();
}

const TOO_MANY_CONNECTIONS =
  'too many connections are open, so new ones are closed from now on. Find the client that leaves them open, or add a replica.';

/** Reports the addresses: as a log line among JSON lines, otherwise as links to open. */
function announce(url: string, { config, log }: Setup, { stdout }: Pick<Terminal, 'stdout'>): void {
  const { recruitingUrl: upstream } = config;
  if (config.production) {
    log.info({ url: `${url}/graphql`, upstream }, 'serving');
    return;
  }
  stdout.write(`
${upstream === undefined ? SANDBOX_NOTICE : `  Upstream   ${upstream}`}

  ${config.graphiql ? 'GraphiQL ' : 'GraphQL  '}  ${url}/graphql
  Health     ${url}/health   ${url}/ready

`);
}

const SANDBOX_NOTICE = `  ***  SANDBOX  ***  The people served here are made up.
  Set RECRUITING_URL to serve the real recruiting service.`;

/**
 * Serves `/metrics` at the admin address, with CPU, memory, garbage collection and event loop lag of this process.
 *
 * @throws Error with a message for the operator
 */
async function listenAdmin(metrics: Metrics, { config, log, closeAtEnd }: Setup): Promise<void> {
  const { adminHost: host, adminPort: port } = config;
  const ofProcess = new Registry();
  collectDefaultMetrics({ register: ofProcess });
  const text = async () => (await metrics.text()) + (await ofProcess.metrics());
  const handler = adminHandler({ ...metrics, text }, log);
  const admin = closeAtEnd(await listen(handler, { host, port, maxConnections: 64 }));
  log.info({ url: `${admin.url}/metrics` }, 'metrics');
}
