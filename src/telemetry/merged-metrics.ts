import type { Registry } from 'prom-client';

/** The metrics of a process that answers requests. */
export interface WorkerMetrics {
  /** Of its gateway, in the text format of Prometheus. */
  readonly gateway: string;
  /** Of the process, as prom-client writes them for another process. */
  readonly process: object[];
}

/** Merges the metrics of all processes. Those of processes are merged as prom-client does. */
export async function mergedMetrics(
  workers: readonly WorkerMetrics[],
  primary: object[],
): Promise<string> {
  const { AggregatorRegistry } = await import('prom-client');
  const processes: Registry = AggregatorRegistry.aggregate([
    primary,
    ...workers.map((worker) => worker.process),
  ]);
  return `${mergedText(workers.map(({ gateway }) => gateway))}\n${await processes.metrics()}`;
}

/** Adds up counts, and what processes hold or have in flight. Of other values, takes the largest. */
function mergedText(texts: readonly string[]): string {
  const values = new Map<string, number>();
  const comments = new Set<string>();
  for (const line of texts.flatMap((text) => text.split('\n'))) {
    if (line === '') continue;
    if (line.startsWith('#')) comments.add(line);
    else add(line);
  }
  const series = Map.groupBy(values, ([name]) => familyOf(name, comments));
  const commentsOf = Map.groupBy(comments, (comment) => comment.split(' ')[2]!);
  return [...commentsOf]
    .map(([family, its]) =>
      [...its, ...(series.get(family) ?? []).map(([name, value]) => `${name} ${value}`)].join('\n'),
    )
    .join('\n\n')
    .concat('\n');

  function add(line: string): void {
    const end = line.lastIndexOf(' ');
    const [name, value] = [line.slice(0, end), Number(line.slice(end + 1))];
    const before = values.get(name) ?? 0;
    values.set(name, IS_STATE.test(name) ? Math.max(before, value) : before + value);
  }
}

/** What is a state of the service or of the program, and not of one process. */
const IS_STATE = /^recruiting_(build_info|schema_drift|upstream_breaker_open)\b/;

/** A histogram has lines under three names. */
function familyOf(series: string, comments: ReadonlySet<string>): string {
  const [name] = series.split('{', 1);
  const histogram = name!.replace(/_(bucket|sum|count)$/, '');
  return comments.has(`# TYPE ${histogram} histogram`) ? histogram : name!;
}
