import { systemClock } from '../clock.ts';
import { VERSION, type Config } from '../config.ts';
import { createGateway, keepTokens } from '../gateway.ts';
import { createCallerBudgets } from '../paging/page-budget.ts';
import type { PageLedger } from '../page-ledger.ts';
import { mergedMetrics } from '../telemetry/merged-metrics.ts';
import { processMetrics } from '../telemetry/metrics.ts';
import { createTokenTelemetry } from '../telemetry/telemetry.ts';
import { borrowTokens, createTokenLender } from '../workers/shared-tokens.ts';
import { startWorkers, type ChannelToPrimary } from '../workers/worker-processes.ts';
import type { UpstreamParts } from './service-or-sandbox.ts';
import { gatewayParts, listenAdmin, listenFor, type Process, type Service } from './serving.ts';
import { replicaOf } from './token-store.ts';

/**
 * Keeps the tokens, counts the pages of callers, reports the metrics of all processes, and starts the workers that
 * answer requests.
 */
export async function serveByWorkers(upstream: UpstreamParts, process: Process): Promise<Service> {
  const { config, terminal, log, own } = process;
  const { store, rescue, ledger, settings } = upstream;
  const { recruitingUrl } = settings;
  const telemetry = createTokenTelemetry({
    version: VERSION,
    baseUrl: recruitingUrl,
    tokens: () => keeper.health(),
  });
  const keeper = await keepTokens({
    config: { ...config, ...settings },
    store,
    rescue,
    replica: replicaOf(terminal.owner),
    proxyFor: terminal.proxyFor,
    onExchange: telemetry.exchanged,
    clock: systemClock,
    log,
  });
  own({ close: () => keeper.stop() });
  const lender = own(createTokenLender(keeper, systemClock));
  const budgets = own(createCallerBudgets(config.pagesPerMinute, systemClock, ledger));
  const ofPrimary = processMetrics();
  await listenAdmin(
    {
      ...telemetry.metrics,
      text: async () => {
        const replies = workers.channels.map((worker) => worker.request('metrics', null));
        // One that has just ended is missing.
        const metrics = (await Promise.allSettled(replies)).flatMap((reply) =>
          reply.status === 'fulfilled' ? reply.value : [],
        );
        return `${await telemetry.metrics.text()}\n${await mergedMetrics(metrics, await ofPrimary.json())}`;
      },
    },
    process,
  );
  const workers = own(
    await startWorkers({
      count: config.workers,
      onStart: (worker, isFirst) => {
        worker.answer('start', async () => ({ recruitingUrl, isFirst }));
        worker.answer('takePages', budgets.take);
        lender.lendTo(worker);
      },
      clock: systemClock,
      log,
    }),
  );
  terminal.hurry.addEventListener('abort', () => workers.signal());
  return {
    url: workers.url,
    prepareStop: () => workers.signal(),
    stopRefreshing: () => void keeper.stop(),
  };
}

/** Answers requests with the tokens of the primary. */
export async function serveAsWorker(primary: ChannelToPrimary, process: Process): Promise<Service> {
  const { config } = process;
  const { recruitingUrl, isFirst } = await primary.request('start', null);
  const tokens = await borrowTokens(primary);
  const settings = {
    ...shareOf(config),
    recruitingUrl,
    schemaPollSeconds: isFirst ? config.schemaPollSeconds : undefined,
  };
  const ledger: PageLedger = { take: (report) => primary.request('takePages', report) };
  const gateway = process.own(
    await createGateway({ ...gatewayParts(settings, process), tokens, ledger }),
  );
  const ofProcess = processMetrics();
  primary.answer('metrics', async () => ({
    gateway: await gateway.metrics.text(),
    process: await ofProcess.json(),
  }));
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
