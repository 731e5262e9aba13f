import { writeFileSync } from 'node:fs';
import { pathOf } from '../child-processes.ts';
import { FRONT_DOOR, startGateway } from '../gateway.ts';
import { startLoad, type Load } from '../load.ts';
import { plot, type Series } from '../plot.ts';
import { peakOf, residentOf, watchPeak } from '../process-figures.ts';
import type { Benchmark, Row } from '../report.ts';
import { startUpstream, type Upstream } from '../services.ts';

const LENGTHS = [1_000, 10_000, 100_000, 1_000_000];

const ways = {
  plain: { accept: 'application/json', query: '{ allPersons { id firstName } }' },
  '@stream': {
    accept: 'multipart/mixed',
    query: '{ allPersons @stream(initialCount: 0) { id firstName } }',
  },
};

type Way = keyof typeof ways;

interface Point {
  readonly way: Way;
  readonly records: number;
  /** The cost of one record; undefined if there was no answer. */
  readonly cost: { readonly microseconds: number; readonly bytes: number } | undefined;
}

export const growth: Benchmark = {
  title: 'what a record of allPersons costs in lists of different lengths, each in a fresh process',
  measure: async ({ svg }) => {
    await using load = startLoad();
    const points: Point[] = [];
    for (const records of LENGTHS) points.push(...(await measureLength(load, records)));
    if (svg) writeFileSync(pathOf('../docs/performance.svg'), draw(points));
    return rowsOf(points);
  },
};

async function measureLength(load: Load, records: number): Promise<Point[]> {
  await using upstream = await startUpstream({ persons: records });
  // The first reading lets the upstream prepare its answers.
  await measureOnce(load, upstream, '@stream', records);
  const points: Point[] = [];
  for (const way of Object.keys(ways) as Way[]) {
    points.push(await measureOnce(load, upstream, way, records));
  }
  return points;
}

async function measureOnce(
  load: Load,
  upstream: Upstream,
  way: Way,
  records: number,
): Promise<Point> {
  const env = { ...FRONT_DOOR, DRAIN_MAX_ITEMS: String(2 * records) };
  await using gateway = await startGateway(upstream, { env });
  const { endpoint, pid } = gateway;
  const { accept, query } = ways[way];
  const headers = { ...gateway.headers, accept };
  watchPeak(pid);
  const before = residentOf(pid);
  const body = JSON.stringify({ query });
  const [answer] = await load.read({ endpoint, headers, bodies: [body] });
  const { status, bytes, ms } = answer!;
  if (status !== 200 || bytes < records * 30) return { way, records, cost: undefined };
  const cost = { microseconds: (ms * 1_000) / records, bytes: (peakOf(pid) - before) / records };
  return { way, records, cost };
}

function rowsOf(points: readonly Point[]): Row[] {
  return points.flatMap(({ way, records, cost }): Row[] => {
    const what = `${way}, ${records.toLocaleString('en')} records`;
    if (!cost) return [{ what: `${what}: no answer`, figures: [0], unit: '' }];
    return [
      { what: `${what}: time of a record`, figures: [cost.microseconds], unit: 'us' },
      { what: `${what}: peak memory of a record`, figures: [cost.bytes], unit: 'bytes' },
    ];
  });
}

function draw(points: readonly Point[]): string {
  const series = (figure: 'microseconds' | 'bytes'): Series[] =>
    (Object.keys(ways) as Way[]).map((way) => ({
      name: way,
      points: points
        .filter((point) => point.way === way)
        .flatMap(({ records, cost }) => (cost ? [{ x: records, y: cost[figure] }] : [])),
    }));
  return plot([
    { title: 'time of a record, us', series: series('microseconds') },
    { title: 'peak memory of a record, bytes', series: series('bytes') },
  ]);
}
