import type { Logger } from 'pino';
import { NoAnswerError, systemClock } from '../clock.ts';
import { VERSION, type Config } from '../config.ts';
import { createGateway, keepTokens } from '../gateway.ts';
import { createCallerBudgets } from '../paging/page-budget.ts';
import type { PageLedger } from '../page-ledger.ts';
import { gatewayParts } from '../setup/open-gateway.ts';
import type { UpstreamParts } from '../setup/open-upstream.ts';
import { replicaOf } from '../setup/token-store.ts';
import { mergedMetrics, processMetrics } from '../telemetry/metrics.ts';
import { createPrimaryTelemetry } from '../telemetry/telemetry.ts';
import type { TokenKeeper } from '../tokens/token-keeper.ts';
import type { Channel } from '../workers/channel.ts';
import { borrowTokens, createTokenLender, type TokenLender } from '../workers/shared-tokens.ts';
import {
  createWorkerProcesses,
  type ChannelToPrimary,
  type RunningWorker,
  type WorkerProcesses,
} from '../workers/worker-processes.ts';
import { listenAdmin, listenFor, loadedConfig, type Process, type Service } from './serving.ts';
import { exitCodeOf, USAGE_ERROR } from './terminal.ts';

/**
 * Keeps the tokens, counts the pages of callers, reports the metrics of all processes, and starts the workers that
 * answer requests.
 */
export async function serveByWorkers(
  upstream: UpstreamParts,
  process: Process,
): Promise<Service | undefined> {
  const { config, terminal, log, own } = process;
  const { store, rescue, ledger, settings } = upstream;
  const { recruitingUrl } = settings;
  const telemetry = createPrimaryTelemetry({
    version: VERSION,
    baseUrl: recruitingUrl,
    tokens: () => keeper?.health(),
    workers: () => workers,
  });
  let keeper: TokenKeeper | undefined;
  const keep = async () => {
    keeper = await keepTokens({
      config: { ...config, ...settings },
      store,
      rescue,
      replica: replicaOf(terminal.owner),
      proxyFor: terminal.proxyFor,
      onExchange: telemetry.exchanged,
      clock: systemClock,
      log,
    });
    return createTokenLender(keeper, systemClock);
  };
  // Kept from the first worker on that needs them, which has checked everything else.
  let lender: Promise<TokenLender> | undefined;
  own({
    close: async () => {
      await (await lender?.catch(() => undefined))?.close();
      await keeper?.stop();
    },
  });
  const budgets = own(createCallerBudgets(config.pagesPerMinute, systemClock, ledger));
  const workers = own(
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
  const ofPrimary = processMetrics();
  const ofWorkers = metricsOf(workers, log);
  await listenAdmin(
    {
      ...telemetry.metrics,
      text: async () =>
        await mergedMetrics([
          [...(await telemetry.metrics.json()), ...(await ofPrimary.json())],
          ...(await ofWorkers()),
        ]),
    },
    process,
  );
  // Also while they start.
  terminal.stop.addEventListener('abort', () => workers.stop());
  terminal.hurry.addEventListener('abort', () => workers.hurry());
  const url = await workers.start();
  if (url === undefined) return undefined;
  return {
    url,
    prepareStop: () => workers.stop(),
    stopRefreshing: () => void keeper?.stop(),
  };
}

/**
 * Reads the metrics of all workers. Those of a worker that does not answer are the last ones that it reported: without
 * them, its counts would seem to begin again.
 */
function metricsOf(workers: WorkerProcesses, log: Logger): () => Promise<object[][]> {
  const last = new WeakMap<Channel, object[]>();
  const read = async ({ channel, pid, state }: RunningWorker): Promise<object[][]> => {
    try {
      if (state === 'serving') last.set(channel, await channel.request('metrics', null));
    } catch (error) {
      // That it does not answer, or has ended, is logged elsewhere.
      if (!(error instanceof NoAnswerError) && !channel.hasEnded) {
        log.error({ err: error, worker: pid }, 'the metrics of a worker cannot be read');
      }
    }
    const known = last.get(channel);
    return known ? [known] : [];
  };
  return async () => (await Promise.all(workers.running.map(read))).flat();
}

/**
 * Answers requests with the tokens of the primary.
 *
 * @returns undefined if it cannot start, which the primary reports: the other workers cannot either
 */
export async function serveAsWorker(
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
  const gateway = process.own(
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

/** What all workers together may hold and send. */
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
