import { parse } from 'graphql';
import { within, type Clock } from '../clock.ts';
import type { ServiceExecutor } from '../service/request.ts';

/** How long to wait for the service's answer, ms. */
const PATIENCE_MS = 5_000;
/** How long other probes share an answer, ms: probing needs no credential. */
const KEPT_MS = 5_000;

const QUERY = parse('{ __typename }');

/**
 * Finds out whether queries work, with the smallest query that the service answers. It needs a token, a connection and
 * a turn, like every other query. Probes within some seconds share one query.
 */
export function createQueryProbe(execute: ServiceExecutor, clock: Clock): () => Promise<boolean> {
  let last: { readonly works: Promise<boolean>; endedAt?: number } | undefined;
  return () => {
    const isOld = last?.endedAt !== undefined && clock.elapsed() - last.endedAt >= KEPT_MS;
    if (!last || isOld) {
      const probe: NonNullable<typeof last> = (last = { works: sendQuery() });
      void probe.works.then(() => (probe.endedAt = clock.elapsed()));
    }
    return last.works;
  };

  async function sendQuery(): Promise<boolean> {
    const ending = new AbortController();
    try {
      const request = { document: QUERY, signal: ending.signal };
      const answer = await within(clock, execute(request), () => PATIENCE_MS, 'the service');
      return !answer.errors?.length && answer.data !== undefined && answer.data !== null;
    } catch {
      return false;
    } finally {
      ending.abort();
    }
  }
}
