import type { Logger } from 'pino';
import { systemClock } from '../clock.ts';
import { configWarnings, readConfig, type Config } from '../config.ts';
import { createGateway } from '../gateway.ts';
import { listen, type Listening } from '../http/listen.ts';
import { adminHosts } from '../http/origin/hosts.ts';
import { adminHandler } from '../http/paths.ts';
import { createLog } from '../log.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { processMetrics, type Metrics } from '../telemetry/metrics.ts';
import { openRescue, type Rescue } from '../tokens/store/rescue.ts';
import { openSqliteStore } from '../tokens/store/sqlite/sqlite-store.ts';
import type { TokenStore } from '../tokens/store/token-store.ts';
import { readAdaptersFile, readSnapshotFile, readTrustedDocumentsFile } from './operator-files.ts';
import { stopped, type Terminal } from './terminal.ts';
import { openStore, replicaOf, rescueFolder } from './token-store.ts';

/** Serves the gateway until the process is asked to stop. */
export async function serve(terminal: Terminal): Promise<void> {
  const config = readConfig(terminal.env, terminal.readFile);
  const log = await createLog({
    level: config.logLevel,
    json: config.production,
    colors: terminal.stdout.isTTY === true,
    destination: terminal.stdout,
  });
  for (const warning of configWarnings(terminal.env, config)) log.warn(warning);
  const snapshot = readSnapshotFile(config.schemaPath, terminal);
  const overrides = readAdaptersFile(config.schemaPath, terminal);
  const trustedDocuments = readTrustedDocumentsFile(config.trustedDocuments, terminal);
  await using parts = new AsyncDisposableStack();
  const own: Own = (part) => parts.adopt(part, (it) => it.close());

  const isSandbox = config.recruitingUrl === undefined;
  const upstream = isSandbox ? await sandboxInside(own) : real(config, terminal, log, own);
  const gateway = own(
    await createGateway({
      ...upstream,
      config: { ...config, ...upstream.settings },
      snapshot,
      overrides,
      trustedDocuments,
      proxyFor: terminal.proxyFor,
      replica: replicaOf(terminal.owner),
      clock: systemClock,
      log,
    }),
  );
  const admin = await listenAdmin(gateway.metrics, config, log);
  if (admin) own(admin);
  const server = own(
    await listen(gateway.handler, {
      ...config,
      clock: systemClock,
      onCut: (requests) =>
        log.warn({ requests }, 'requests were cut off, because they did not end in time'),
    }),
  );
  announce(server.url, upstream.settings.recruitingUrl, config, log, terminal);
  await stopped(terminal.stop);
  gateway.sayNotReady();
  server.keepNoConnections();
  await takeLastRequests(config.shutdownDelayMs, terminal, log);
  log.info('stopping: requests in flight have 10 s to finish, and a token pair is saved first');
  gateway.stopRotating();
}

type Own = <T extends { close(): Promise<void> }>(part: T) => T;

interface Upstream {
  settings: { recruitingUrl: string; tokenLink: string | undefined };
  store: TokenStore;
  rescue?: Rescue;
}

function real(config: Config, { owner }: Terminal, log: Logger, own: Own): Upstream {
  const { recruitingUrl, tokenLink, tokenStore } = config;
  return {
    settings: { recruitingUrl: recruitingUrl!, tokenLink },
    store: own(openStore(tokenStore, config)),
    rescue: own(openRescue(rescueFolder(config, owner), log)),
  };
}

/** Starts a sandbox. Its tokens stay in memory, so that they cannot mix with real ones. */
async function sandboxInside(own: Own): Promise<Upstream> {
  // Loaded only here: a gateway in front of a service does not need it.
  const { startSandbox } = await import('../sandbox/sandbox.ts');
  const { url, tokenLink } = own<Sandbox>(await startSandbox());
  return {
    settings: { recruitingUrl: url, tokenLink },
    store: own(openSqliteStore(':memory:')),
  };
}

/**
 * Serves `/metrics` at its own address. Undefined if that address is taken and was not configured.
 *
 * @throws Error with a message for the operator
 */
async function listenAdmin(
  metrics: Metrics,
  { adminHost: host, adminPort: port, adminPortGiven, allowedHosts }: Config,
  log: Logger,
): Promise<Listening | undefined> {
  try {
    const variables = ['ADMIN_HOST', 'ADMIN_PORT'] as const;
    const ofProcess = processMetrics();
    const { contentType } = metrics;
    const text = async () => (await metrics.text()) + (await ofProcess());
    const isOurHost = adminHosts({ host, allowedHosts });
    const handler = adminHandler({ contentType, text }, isOurHost);
    const admin = await listen(handler, { host, port, variables });
    log.info({ url: `${admin.url}/metrics` }, 'metrics');
    return admin;
  } catch (error) {
    // The port is the default one: a second gateway on a developer's machine need not fail for it.
    if (adminPortGiven) throw error;
    log.warn(`Metrics are not served: ${(error as Error).message}`);
    return undefined;
  }
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
