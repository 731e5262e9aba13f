/**
 * What one registry of metrics holds, in the text format of Prometheus. A count is an addition to a plain number:
 * requests pay for nothing else. Text is made when it is read. prom-client has no way to fill the buckets of a
 * histogram at the scrape, and each of its observations costs more than half a microsecond.
 */
export interface Exposition {
  /** @returns counts; the values of the labels come in the order of their names */
  counter(options: FamilyOptions): (by: number, ...labels: Labels) => void;
  /** @returns observes one value */
  histogram(
    options: FamilyOptions & { readonly buckets: readonly number[] },
  ): (value: number, ...labels: Labels) => void;
  /**
   * @param options.type `counter` for what is counted elsewhere
   * @param read gives the values of the moment, each with those of its labels; none: nobody knows
   */
  gauge(
    options: FamilyOptions & { readonly type?: 'gauge' | 'counter' },
    read: () => Iterable<GaugeSample>,
  ): void;
  text(): string;
}

export interface FamilyOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly [] | readonly [string] | readonly [string, string];
}

type Labels = readonly [first?: string, second?: string];

export type GaugeSample = readonly [value: number, ...labels: Labels];

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export function createExposition(): Exposition {
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
    text: () => `${families.map((family) => family()).join('\n\n')}\n`,
  };
}

/** One value for each combination of labels: found by one lookup a label, without anything being built. */
function createSeries<V>(options: FamilyOptions, create: () => V) {
  const all = new Map<string, Map<string, V>>();
  const series = { at, map };
  // Without labels there is one from the start: its 0 says that nothing happened yet.
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
