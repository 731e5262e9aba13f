import type { IncomingMessage, ServerResponse } from 'node:http';
import { collectDefaultMetrics, type Registry } from 'prom-client';
import { systemClock } from '../clock.ts';
import { readConfig } from '../config.ts';
import { listen } from '../http/listen.ts';
import { openGateway, type Setup } from '../setup/open-gateway.ts';
import { createLog } from '../telemetry/log.ts';
import { loadGatewayConfig } from './gateway-config-file.ts';
import { stopped, type Terminal } from './terminal.ts';

/** Serves the gateway until the process is asked to stop. */
export async function serve(_options: object, terminal: Terminal): Promise<void> {
  const { env, clock, stdout, stop } = terminal;
  const config = readConfig(env, 'server');
  const { logLevel: level, production: isJson, shutdownDelayMs } = config;
  const log = await createLog({ level, isJson, destination: stdout });
  terminal.onExit(() => log.flush());
  await using parts = new AsyncDisposableStack();
  const added = await loadGatewayConfig(config);
  if (added) log.info({ file: added.source }, 'configuration file loaded');
  const setup: Setup = { config, added, env, clock, log, parts };
  const gateway = await openGateway(setup);
  await listenAdmin(gateway.metrics, setup);
  const { host, port } = config;
  const onFull = () => log.warn(TOO_MANY_CONNECTIONS);
  const server = await listen(gateway.handler, { host, port, onFull }).catch(at('HOST or PORT'));
  parts.defer(() => server.close());
  announce(server.url, setup, terminal);
  await stopped(stop);
  // From now on `/ready` replies 503, and each answer is the last one of its connection.
  gateway.sayNotReady();
  server.keepNoConnections();
  if (shutdownDelayMs > 0) {
    // Balancers go on sending requests until `/ready` has failed.
    log.info(
      { ms: shutdownDelayMs },
      'asked to stop: /ready fails, and requests are still accepted for a while',
    );
    await systemClock.sleep(shutdownDelayMs);
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
async function listenAdmin(metrics: Registry, { config, log, parts }: Setup): Promise<void> {
  const { adminHost: host, adminPort: port } = config;
  collectDefaultMetrics({ register: metrics });
  const handler = async ({ url }: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (url?.split('?', 1)[0] !== '/metrics') return void response.writeHead(404).end();
    try {
      const text = await metrics.metrics();
      response.writeHead(200, { 'content-type': metrics.contentType }).end(text);
    } catch (error) {
      log.error({ err: error }, 'the metrics cannot be read');
      response.writeHead(500).end();
    }
  };
  const admin = await listen(handler, { host, port, maxConnections: 64 }).catch(
    at('ADMIN_HOST or ADMIN_PORT'),
  );
  parts.defer(() => admin.close());
  log.info({ url: `${admin.url}/metrics` }, 'metrics');
}

/** Names the settings of an address that cannot be used. */
function at(settings: string): (error: Error) => never {
  return (error) => {
    throw new Error(`${error.message}. Change ${settings}.`, { cause: error });
  };
}
