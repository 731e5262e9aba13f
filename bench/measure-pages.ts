import type { Server } from './gateway.ts';
import type { Load } from './load.ts';
import { cpuOf } from './process-figures.ts';
import { pagesOf } from './persons-pages.ts';
import type { Upstream } from './services.ts';

export const CONNECTIONS = 16;
/** More than are in flight, so that no gateway gains by sharing requests. */
export const PAGES = 40;

/** Which gateway is measured, and with which requests. */
interface Contender {
  readonly server: Pick<Server, 'endpoint' | 'headers' | 'pid'>;
  readonly bodies: readonly string[];
}

export interface PageFigures {
  /** Requests a second. */
  readonly rate: number;
  /** Microseconds of one request. */
  readonly cpu: number;
  /** Per request. */
  readonly upstreamRequests: number;
}

export async function pagesFrom(server: Contender['server']): Promise<Contender> {
  return { server, bodies: await pagesOf(server, PAGES) };
}

async function measurePages(
  load: Load,
  upstream: Upstream,
  { server: { endpoint, headers, pid }, bodies }: Contender,
  ms: number,
): Promise<PageFigures> {
  const { requests: before } = await upstream.tell({ do: 'look' });
  const cpu = cpuOf(pid);
  const { done, seconds } = await load.press({
    endpoint,
    headers,
    bodies,
    connections: CONNECTIONS,
    ms,
  });
  const used = cpuOf(pid) - cpu;
  const { requests } = await upstream.tell({ do: 'look' });
  return {
    rate: done / seconds,
    cpu: (used / done) * 1_000_000,
    upstreamRequests: (requests - before) / done,
  };
}

/** Measures each of them once a round, after a warm-up, so that all run under the same conditions. */
export async function measureInTurn<Name extends string>(
  load: Load,
  upstream: Upstream,
  contenders: Record<Name, Contender>,
  { rounds, ms, warmUpMs }: { rounds: number; ms: number; warmUpMs: number },
): Promise<Record<Name, PageFigures>[]> {
  const names = Object.keys(contenders) as Name[];
  for (const name of names) await measurePages(load, upstream, contenders[name], warmUpMs);
  const measured: Record<Name, PageFigures>[] = [];
  while (measured.length < rounds) {
    const figures = {} as Record<Name, PageFigures>;
    // In another order each round, so that none always follows the same one.
    const turn = measured.length % names.length;
    for (const name of [...names.slice(turn), ...names.slice(0, turn)]) {
      figures[name] = await measurePages(load, upstream, contenders[name], ms);
    }
    measured.push(figures);
  }
  return measured;
}
