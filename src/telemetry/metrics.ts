import type { Metric, Registry } from 'prom-client';

export interface Metrics {
  readonly contentType: string;
  /** In the text format of Prometheus. */
  text(): Promise<string>;
}

interface FamilyOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly [] | readonly [string] | readonly [string, string];
}

type Labels = readonly [first?: string, second?: string];

type GaugeSample = readonly [value: number, ...labels: Labels];

interface GaugeOptions extends FamilyOptions {
  /** `counter` for values that are counted elsewhere. Default: `gauge`. */
  readonly type?: 'gauge' | 'counter';
  /** Returns the current values: a number if there are no labels; undefined while they are unknown. */
  readonly collect: () => number | undefined | Iterable<GaugeSample>;
}

/** A line of the text, as prom-client writes it. */
interface Sample {
  /** Default: the name of the family. */
  readonly metricName?: string;
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
}

export type MetricRegistry = ReturnType<typeof createMetricRegistry>;

/**
 * Counts events in plain numbers. prom-client is loaded, and gets the numbers, when metrics are read: its own counters
 * take 5 to 12 times as long for each event, and its histograms 12 times.
 */
export function createMetricRegistry() {
  const families: object[] = [];
  const add = (type: string, options: FamilyOptions, values: () => Sample[]) => {
    const { name, help } = options;
    families.push({ name, get: async () => ({ name, help, type, values: values() }) });
  };
  const metrics = readWith(({ Registry }) => {
    const registry = new Registry();
    // This is all that a registry uses of a metric. The declared type has the methods of prom-client's own classes too.
    for (const family of families) registry.registerMetric(family as Metric);
    return registry;
  });

  return {
    ...metrics,
    /** Returns a function that adds to the count; label values come in the order of the label names. */
    counter: (options: FamilyOptions) => {
      const series = createSeries(options, () => ({ value: 0 }));
      add('counter', options, () => series.all((labels, { value }) => [{ value, labels }]));
      return (by: number, ...[first, second]: Labels): void => {
        series.at(first, second).value += by;
      };
    },
    /** Returns a function that adds one value. */
    histogram: (options: FamilyOptions & { readonly buckets: readonly number[] }) => {
      const { name, buckets } = options;
      const series = createSeries(options, () => ({
        inBuckets: buckets.map(() => 0),
        sum: 0,
        count: 0,
      }));
      add('histogram', options, () =>
        series.all((labels, { inBuckets, sum, count }) => {
          let upTo = 0;
          return [
            ...buckets.map((le, at) => ({
              metricName: `${name}_bucket`,
              value: (upTo += inBuckets[at]!),
              labels: { le, ...labels },
            })),
            { metricName: `${name}_bucket`, value: count, labels: { le: '+Inf', ...labels } },
            { metricName: `${name}_sum`, value: sum, labels },
            { metricName: `${name}_count`, value: count, labels },
          ];
        }),
      );
      return (value: number, ...[first, second]: Labels): void => {
        const of = series.at(first, second);
        of.sum += value;
        of.count += 1;
        let at = 0;
        while (at < buckets.length && value > buckets[at]!) at += 1;
        if (at < buckets.length) of.inBuckets[at]! += 1;
      };
    },
    gauge: (options: GaugeOptions): void =>
      add(options.type ?? 'gauge', options, () => {
        const values = options.collect();
        if (values === undefined) return [];
        if (typeof values === 'number') return [{ value: values, labels: {} }];
        return Array.from(values, ([value, ...labels]) => ({
          value,
          labels: labelled(options, labels),
        }));
      }),
  };
}

/**
 * Creates the metrics that Prometheus clients report for every process: CPU, memory, garbage collection, event loop
 * lag. They are collected from the first reading on, so a gateway whose metrics are not read does not pay for them.
 */
export function processMetrics(): Metrics {
  return readWith(({ collectDefaultMetrics, Registry }) => {
    const register = new Registry();
    collectDefaultMetrics({ register });
    return register;
  });
}

function readWith(create: (client: typeof import('prom-client')) => Registry): Metrics {
  let created: Promise<Registry> | undefined;
  const registry = () => (created ??= import('prom-client').then(create));
  return {
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    text: async () => await (await registry()).metrics(),
  };
}

/** Creates one value for each combination of label values. They are found by one lookup per label: no key is built. */
function createSeries<V>(options: FamilyOptions, create: () => V) {
  const values = new Map<string, Map<string, V>>();
  // Without labels there is a single series, which starts at 0: nothing has happened yet.
  if (!options.labelNames?.length) at();
  return { at, all };

  function at(first = '', second = ''): V {
    let inner = values.get(first);
    if (!inner) values.set(first, (inner = new Map()));
    let value = inner.get(second);
    if (value === undefined) inner.set(second, (value = create()));
    return value;
  }

  function all(samples: (labels: Sample['labels'], value: V) => Sample[]): Sample[] {
    return [...values].flatMap(([first, inner]) =>
      [...inner].flatMap(([second, value]) => samples(labelled(options, [first, second]), value)),
    );
  }
}

function labelled({ labelNames = [] }: FamilyOptions, values: Labels): Sample['labels'] {
  return Object.fromEntries(labelNames.map((name, at) => [name, values[at] ?? '']));
}
