import type { Registry } from 'prom-client';

/** Metrics in the text format of Prometheus. */
export interface Metrics {
  readonly contentType: string;
  text(): Promise<string>;
}

/**
 * Creates metrics and adds to them. Adding to a count is adding to a number, so requests cost nothing else; the text is
 * written when it is read. prom-client cannot fill the buckets of a histogram at that time, and each of its
 * observations costs more than half a microsecond.
 */
export interface MetricRegistry extends Metrics {
  /** Returns a function that adds to the count; label values come in the order of the label names. */
  counter(options: FamilyOptions): (by: number, ...labels: Labels) => void;
  /** Returns a function that adds one value. */
  histogram(
    options: FamilyOptions & { readonly buckets: readonly number[] },
  ): (value: number, ...labels: Labels) => void;
  /**
   * @param options.type `counter` for what is counted elsewhere
   * @param read returns the current values with their label values; nothing while the values are unknown
   */
  gauge(
    options: FamilyOptions & { readonly type?: 'gauge' | 'counter' },
    read: () => Iterable<GaugeSample>,
  ): void;
}

export interface FamilyOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly [] | readonly [string] | readonly [string, string];
}

type Labels = readonly [first?: string, second?: string];

export type GaugeSample = readonly [value: number, ...labels: Labels];

export function createMetricRegistry(): MetricRegistry {
  const families: (() => string)[] = [];
  const add = (type: string, { name, help }: FamilyOptions, samples: () => Iterable<string>) =>
    families.push(() =>
      [`# HELP ${name} ${escaped(help)}`, `# TYPE ${name} ${type}`, ...samples()].join('\n'),
    );

  return {
    counter: (options) => {
      const series = createSeries(options, () => ({ count: 0 }));
      add('counter', options, () =>
        series.map(({ count }, labels) => line(options.name, labels, count)),
      );
      return (by, first, second) => {
        series.at(first, second).count += by;
      };
    },
    histogram: ({ buckets, ...options }) => {
      const series = createSeries(options, () => ({
        inBuckets: buckets.map(() => 0),
        sum: 0,
        count: 0,
      }));
      add('histogram', options, () =>
        series.map((of, labels) => histogramLines(options.name, labels, { ...of, buckets })).flat(),
      );
      return (value, first, second) => {
        const one = series.at(first, second);
        one.sum += value;
        one.count += 1;
        let at = 0;
        while (at < buckets.length && value > buckets[at]!) at += 1;
        if (at < buckets.length) one.inBuckets[at]! += 1;
      };
    },
    gauge: (options, read) =>
      void add(options.type ?? 'gauge', options, () =>
        Array.from(read(), ([value, ...labels]) =>
          line(options.name, labelled(options, labels), value),
        ),
      ),
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    text: async () => `${families.map((family) => family()).join('\n\n')}\n`,
  };
}

/**
 * The metrics that Prometheus' clients report for every process: CPU, memory, garbage collection, the lag of the event
 * loop. They are loaded and collected from their first reading on, so a gateway whose metrics are not read does not pay
 * for them.
 */
export function processMetrics(): ProcessMetrics {
  let collecting: Promise<Registry> | undefined;
  return {
    text: async () => await (await (collecting ??= collectProcessMetrics())).metrics(),
    json: async () => await (await (collecting ??= collectProcessMetrics())).getMetricsAsJSON(),
  };
}

export interface ProcessMetrics {
  text(): Promise<string>;
  /** For `mergedProcessMetrics` of another process. */
  json(): Promise<object[]>;
}

async function collectProcessMetrics(): Promise<Registry> {
  const { collectDefaultMetrics, Registry } = await import('prom-client');
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}

/** One value for each combination of label values. A value is found by a lookup for each label, without building a key. */
function createSeries<V>(options: FamilyOptions, create: () => V) {
  const all = new Map<string, Map<string, V>>();
  const series = { at, map };
  // Without labels there is a single series, which starts at 0: nothing has happened yet.
  if (!options.labelNames?.length) at();
  return series;

  function at(first = '', second = ''): V {
    let inner = all.get(first);
    if (!inner) all.set(first, (inner = new Map()));
    let value = inner.get(second);
    if (value === undefined) inner.set(second, (value = create()));
    return value;
  }

  function map<T>(write: (value: V, labels: readonly string[]) => T): T[] {
    return [...all].flatMap(([first, inner]) =>
      Array.from(inner, ([second, value]) => write(value, labelled(options, [first, second]))),
    );
  }
}

function histogramLines(
  name: string,
  labels: readonly string[],
  of: {
    readonly buckets: readonly number[];
    readonly inBuckets: readonly number[];
    readonly sum: number;
    readonly count: number;
  },
): string[] {
  let upTo = 0;
  const lines = of.buckets.map((bound, at) => {
    upTo += of.inBuckets[at]!;
    return line(`${name}_bucket`, [`le="${bound}"`, ...labels], upTo);
  });
  return [
    ...lines,
    line(`${name}_bucket`, ['le="+Inf"', ...labels], of.count),
    line(`${name}_sum`, labels, of.sum),
    line(`${name}_count`, labels, of.count),
  ];
}

function labelled({ labelNames = [] }: FamilyOptions, values: readonly (string | undefined)[]) {
  return labelNames.map((name, at) => `${name}="${escaped(values[at] ?? '', true)}"`);
}

function line(name: string, labels: readonly string[], value: number): string {
  return `${name}${labels.length > 0 ? `{${labels.join(',')}}` : ''} ${written(value)}`;
}

function written(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value);
  return value > 0 ? '+Inf' : '-Inf';
}

function escaped(text: string, isQuoted = false): string {
  const safe = text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
  return isQuoted ? safe.replaceAll('"', '\\"') : safe;
}
