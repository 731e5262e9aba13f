interface Family {
  readonly type: string;
  /** The value of each series. */
  readonly samples: Map<string, number>;
}

/** Reads the text format of Prometheus. */
export function familiesOf(text: string): Map<string, Family> {
  const families = new Map<string, Family>();
  let samples = new Map<string, number>();
  for (const line of text.split('\n')) {
    const [, name, type] = /^# TYPE (\S+) (\w+)$/.exec(line) ?? [];
    const [, series, value] = /^([^#].*) (\S+)$/.exec(line) ?? [];
    if (series !== undefined) samples.set(series, Number(value));
    if (name === undefined) continue;
    samples = new Map();
    families.set(name, { type: type!, samples });
  }
  return families;
}

/** The value of each series. */
export function samplesOf(text: string): Map<string, number> {
  return new Map([...familiesOf(text).values()].flatMap(({ samples }) => [...samples]));
}
