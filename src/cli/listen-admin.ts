import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { adminHandler } from '../http/paths.ts';
import { adminHosts } from '../http/origin/hosts.ts';
import { listen, type Listening } from '../http/listen.ts';
import { processMetrics, type Metrics } from '../telemetry/metrics.ts';

/**
 * `/metrics`, at an address of its own. Undefined when that is taken, and nobody asked for it.
 *
 * @throws Error with a message for the operator
 */
export async function listenAdmin(
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
    // Nobody asked for this port: a second gateway on a developer's machine need not fail for it.
    if (adminPortGiven) throw error;
    log.warn(`There are no metrics: ${(error as Error).message}`);
    return undefined;
  }
}
