import { getHeapStatistics } from 'node:v8';
import type { Logger } from 'pino';
import { NoAnswerError, systemClock } from '../clock.ts';
import { configWarnings, readConfig, VERSION, type Config } from '../config.ts';
import type { CheckedConfig } from '../config/gateway-config.ts';
import { createGateway, keepTokens, type Gateway } from '../gateway.ts';
import { listen } from '../http/listen.ts';
import { adminHosts, adminHandler } from '../http/addresses.ts';
import type { PageLedger } from '../page-ledger.ts';
import { createCallerBudgets } from '../paging/page-budget.ts';
import {
  gatewayParts,
  openGateway,
  openUpstream,
  type CloseAtEnd,
  type Setup,
  type UpstreamParts,
} from '../setup/open-gateway.ts';
import { replicaOf } from '../setup/token-store.ts';
import { createLog } from '../telemetry/log.ts';
import { MergedMetrics, processMetrics, type Metrics } from '../telemetry/metrics.ts';
import { createTelemetry } from '../telemetry/telemetry.ts';
import type { TokenKeeper } from '../tokens/token-keeper.ts';
import { borrowTokens, createTokenLender, type TokenLender } from '../workers/shared-tokens.ts';
import {
  channelToPrimary,
  createWorkerProcesses,
  type ChannelToPrimary,
  type WorkerProcess,
  type WorkerProcesses,
} from '../workers/worker-processes.ts';
import { loadGatewayConfig } from './gateway-config-file.ts';
import { exitCodeOf, stopped, USAGE_ERROR, type Terminal } from './terminal.ts';

/** A process that answers requests itself or has workers that do. */
interface Process extends Setup {
  readonly machine: Terminal;
}

/** What answers requests, in this process or in its workers. It ends when the process closes its parts. */
interface Service {
  readonly url: string;
  /** From now on `/ready` replies 503, and each answer is the last one of its connection. */
  prepareStop(): void;
  stopRefreshing(): void;
}

/**
 * Serves the gateway until the process is asked to stop. With WORKERS, this process is the primary: it has the tokens,
 * the sandbox and the metrics, and starts workers, which run this too and answer the requests.
 */
export async function serve(terminal: Terminal): Promise<void> {
  const config = readConfig(terminal.env, terminal.readFile);
  const log = await createLog({
    level: config.logLevel,
    format: config.logFormat,
    colors: terminal.stdout.isTTY === true,
    destination: terminal.stdout,
  });
  terminal.onExit(() => log.flush());
  await using parts = new AsyncDisposableStack();
  const closeAtEnd: CloseAtEnd = (part) => parts.adopt(part, () => part.close());
  const process: Process = { config, machine: terminal, log, closeAtEnd };

  const primary = channelToPrimary(systemClock);
  if (primary) {
    closeAtEnd(primary);
    const service = await serveAsWorker(primary, process);
    return service && (await stop(service, process));
  }
  for (const warning of configWarnings(config)) log.warn(warning);
  // Workers load it themselves, and keep its code out of the process that has the tokens.
  const added = config.workers > 1 ? undefined : await loadedConfig(process);
  const upstream = await openUpstream(process);
  const serveBy = config.workers > 1 ? serveByWorkers : serveHere;
  const service = await serveBy(upstream, { ...process, added });
  if (!service) return;
  announce(service.url, upstream.settings.recruitingUrl, process);
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
  if (config.logFormat !== 'readable') {
    if (isSandbox) log.warn(`SANDBOX: ${MADE_UP}`);
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

/**
 * Keeps the tokens, counts the pages of callers, reports the metrics of all processes, and starts the workers that
 * answer requests.
 */
async function serveByWorkers(
  upstream: UpstreamParts,
  process: Process,
): Promise<Service | undefined> {
  const { config, machine, log, closeAtEnd } = process;
  const { store, rescue, ledger, settings } = upstream;
  const { recruitingUrl } = settings;
  const telemetry = createTelemetry({ version: VERSION, baseUrl: recruitingUrl, log });
  telemetry.workers(() => workers);
  let keeper: TokenKeeper | undefined;
  const keep = async () => {
    keeper = await keepTokens(
      {
        config: { ...config, ...settings },
        store,
        rescue,
        replica: replicaOf(machine.owner),
        proxyFor: machine.proxyFor,
        clock: systemClock,
        log,
      },
      telemetry,
    );
    return createTokenLender(keeper, systemClock);
  };
  // Opened when the first worker needs the tokens: by then it has checked everything else.
  let lender: Promise<TokenLender> | undefined;
  closeAtEnd({
    close: async () => {
      await (await lender?.catch(() => undefined))?.close();
      await keeper?.stop();
    },
  });
  const budgets = closeAtEnd(createCallerBudgets(config.pagesPerMinute, systemClock, ledger));
  const workers = closeAtEnd(
    createWorkerProcesses({
      count: config.workers,
      onStart: (worker, isFirst) => {
        worker.answer('start', async () => ({ recruitingUrl, isFirst }));
        worker.answer('takePages', budgets.take);
        worker.answer('tokens', async () => (await (lender ??= keep())).lendTo(worker));
      },
      shutdownDelayMs: config.shutdownDelayMs,
      clock: systemClock,
      log,
    }),
  );
  const ofWorkers = workerMetrics(workers, log);
  const ofPrimary = processMetrics();
  await listenAdmin(
    {
      ...telemetry.metrics,
      text: async () =>
        await ofWorkers([...(await telemetry.metrics.json()), ...(await ofPrimary.json())]),
    },
    process,
  );
  // Workers can also be stopped while they start.
  machine.stop.addEventListener('abort', () => workers.stop());
  machine.hurry.addEventListener('abort', () => workers.hurry());
  const url = await workers.start();
  if (url === undefined) return undefined;
  return {
    url,
    prepareStop: () => workers.stop(),
    stopRefreshing: () => void keeper?.stop(),
  };
}

/** @returns a function that reads the metrics of all workers, and merges them with the metrics of the primary */
function workerMetrics(workers: WorkerProcesses, log: Logger) {
  const all = new MergedMetrics();
  const read = async ({ channel, pid, state }: WorkerProcess) => {
    try {
      if (state === 'serving') all.report(channel, await channel.request('metrics', null));
    } catch (error) {
      // A worker that does not answer or has ended is logged elsewhere.
      if (error instanceof NoAnswerError || channel.hasEnded) return;
      log.error({ err: error, worker: pid }, 'the metrics of a worker cannot be read');
    }
  };
  return async (ofPrimary: object[]): Promise<string> => {
    await Promise.all(workers.running.map(read));
    return await all.text(ofPrimary);
  };
}

/**
 * Answers requests with the tokens of the primary.
 *
 * @returns undefined if it cannot start, which the primary reports: the other workers cannot either
 */
async function serveAsWorker(
  primary: ChannelToPrimary,
  process: Process,
): Promise<Service | undefined> {
  try {
    return await startWorker(primary, process);
  } catch (error) {
    const { message } = error as Error;
    await primary.request('failed', { message, isMistake: exitCodeOf(error) === USAGE_ERROR });
    return undefined;
  }
}

async function startWorker(primary: ChannelToPrimary, process: Process): Promise<Service> {
  const { config } = process;
  const { recruitingUrl, isFirst } = await primary.request('start', null);
  const added = await loadedConfig(process, isFirst);
  const settings = {
    ...shareOf(config),
    recruitingUrl,
    schemaPollSeconds: isFirst ? config.schemaPollSeconds : undefined,
  };
  const ledger: PageLedger = { take: (report) => primary.request('takePages', report) };
  const gateway = process.closeAtEnd(
    await createGateway({
      ...gatewayParts(settings, { ...process, added }),
      tokens: () => borrowTokens(primary),
      ledger,
    }),
  );
  const ofProcess = processMetrics();
  primary.answer('metrics', async () => [
    ...(await gateway.metrics.json()),
    ...(await ofProcess.json()),
  ]);
  const service = await listenFor(gateway, process);
  primary.report('serving', { url: service.url });
  return service;
}

/** Divides the limits of the gateway among the workers. */
function shareOf(config: Config): Config {
  const of = (limit: number) => Math.ceil(limit / config.workers);
  return {
    ...config,
    upstreamConcurrency: of(config.upstreamConcurrency),
    maxDrains: of(config.maxDrains),
    indexMaxIds: of(config.indexMaxIds),
    answerBytes: of(config.answerBytes),
  };
}

/**
 * Loads what a company adds, and logs the name of the file.
 *
 * @param isFirst whether this worker is the one that reports what all of them find
 */
async function loadedConfig(
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
async function listenFor(
  gateway: Gateway,
  { config, machine, log, closeAtEnd }: Process,
): Promise<Service> {
  const server = closeAtEnd(
    await listen(gateway.handler, {
      ...config,
      clock: systemClock,
      // With workers, the primary accepts the connections and does little else.
      acceptors: config.workers > 1 ? 1 : ACCEPTORS,
      maxConnections: maxConnections(machine),
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
 * The number of connections that fit into the heap (3 kB each, and up to 16 kB more while a request arrives) and leave
 * file descriptors for the token store and for connections to the service.
 */
function maxConnections({ readFile }: Terminal): number {
  const byHeap = Math.floor(getHeapStatistics().heap_size_limit / HEAP_PER_CONNECTION);
  let limits = '';
  try {
    limits = readFile('/proc/self/limits');
  } catch {
    // The file exists only on Linux.
  }
  const files = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? Infinity);
  return Math.max(MIN_CONNECTIONS, Math.min(byHeap, files - OTHER_FILES));
}

const ACCEPTORS = 64;
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
