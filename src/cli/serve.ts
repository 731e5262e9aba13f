import type { Logger } from 'pino';
import { systemClock } from '../clock.ts';
import { configWarnings, readConfig, type Config } from '../config.ts';
import { createLog } from '../telemetry/log.ts';
import { openGateway } from '../setup/open-gateway.ts';
import { openUpstream, type Own, type UpstreamParts } from '../setup/open-upstream.ts';
import { processMetrics } from '../telemetry/metrics.ts';
import { channelToPrimary } from '../workers/worker-processes.ts';
import { serveAsWorker, serveByWorkers } from './serve-workers.ts';
import { listenAdmin, listenFor, loadedConfig, type Process, type Service } from './serving.ts';
import { stopped, type Terminal } from './terminal.ts';

/**
 * Serves the gateway until the process is asked to stop. With WORKERS, this process is the primary: it has the tokens,
 * the sandbox and the metrics, and starts workers, which run this too and answer the requests.
 */
export async function serve(terminal: Terminal): Promise<void> {
  const config = readConfig(terminal.env, terminal.readFile);
  const log = await createLog({
    level: config.logLevel,
    json: config.production,
    colors: terminal.stdout.isTTY === true,
    destination: terminal.stdout,
  });
  terminal.onExit(() => log.flush());
  await using parts = new AsyncDisposableStack();
  const own: Own = (part) => parts.adopt(part, (it) => it.close());
  const process = { config, machine: terminal, terminal, log, own };

  const primary = channelToPrimary(systemClock);
  if (primary) {
    own(primary);
    const service = await serveAsWorker(primary, process);
    return service && (await stop(service, process));
  }
  for (const warning of configWarnings(terminal.env, config)) log.warn(warning);
  // With workers, these load it, and not the process that has the tokens.
  const added = config.workers > 1 ? undefined : await loadedConfig(process);
  const upstream = await openUpstream(config, terminal, log, own);
  const serveBy = config.workers > 1 ? serveByWorkers : serveHere;
  const service = await serveBy(upstream, { ...process, added });
  if (!service) return;
  announce(service.url, upstream.settings.recruitingUrl, config, log, terminal);
  await stop(service, process);
}

async function serveHere(upstream: UpstreamParts, process: Process): Promise<Service> {
  const gateway = await openGateway(upstream, process);
  const ofProcess = processMetrics();
  await listenAdmin(
    {
      ...gateway.metrics,
      text: async () => (await gateway.metrics.text()) + (await ofProcess.text()),
    },
    process,
  );
  return await listenFor(gateway, process);
}

/** Waits until the process is asked to stop, and then as long as requests are still accepted. */
async function stop(service: Service, { config, terminal, log }: Process): Promise<void> {
  await stopped(terminal.stop);
  service.prepareStop();
  await takeLastRequests(config.shutdownDelayMs, terminal, log);
  log.info('stopping: requests in flight have 10 s to finish, and a token pair is saved first');
  service.stopRefreshing();
}

/** Reports the addresses: as a log line in production, otherwise as links to open. */
function announce(
  url: string,
  upstream: string,
  config: Config,
  log: Logger,
  { stdout }: Terminal,
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

const SANDBOX_NOTICE = `  ***  SANDBOX  ***  The people served here are made up.
  Set RECRUITING_URL to serve the real recruiting service.
`;

/** Accepts requests for a while: balancers go on sending them until `/ready` has failed. */
async function takeLastRequests(ms: number, { hurry }: Terminal, log: Logger): Promise<void> {
  if (ms === 0) return;
  log.info({ ms }, 'asked to stop: /ready fails, and requests are still accepted for a while');
  // It rejects when a second signal cuts it short.
  await systemClock.sleep(ms, hurry).catch(() => undefined);
}
