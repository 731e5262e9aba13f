const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const SAMPLE = new RegExp(
  `^(?<name>${NAME})(?<labels>\\{(?:[a-z_]+="(?:[^"\\\\\\n]|\\\\.)*",?)*\\})? (?<value>\\S+)$`,
);

/** Reads the text format of Prometheus strictly: malformed text throws. */
export function familiesOf(
  text: string,
): Map<string, { type: string; samples: Map<string, number> }> {
  const families = new Map<string, { type: string; samples: Map<string, number> }>();
  const helped = new Set<string>();
  if (!text.endsWith('\n')) throw new Error('The last line has no end.');
  for (const line of text.split('\n')) {
    const [, keyword, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (line === '') continue;
    if (keyword === 'HELP') {
      if (helped.has(name)) throw new Error(`Twice: ${line}`);
      helped.add(name);
    } else if (keyword === 'TYPE') {
      if (!helped.has(name) || families.has(name)) throw new Error(`Out of place: ${line}`);
      families.set(name, { type: rest, samples: new Map() });
    } else {
      const sample = SAMPLE.exec(line)?.groups;
      const value = Number(sample?.['value']?.replace(/^Nan$/, 'NaN').replace(/Inf$/, 'Infinity'));
      const family = families.get(sample?.['name'] ?? '') ?? families.get(baseOf(sample?.['name']));
      if (!sample || !family) throw new Error(`Not a sample of a metric: ${line}`);
      const series = `${sample['name']}${sample['labels'] ?? ''}`;
      if (family.samples.has(series)) throw new Error(`Twice: ${line}`);
      family.samples.set(series, value);
    }
  }
  return families;
}

/** The value of each series. */
export function samplesOf(text: string): Map<string, number> {
  return new Map([...familiesOf(text).values()].flatMap(({ samples }) => [...samples]));
}

function baseOf(name = ''): string {
  return name.replace(/_(bucket|sum|count)$/, '');
}
