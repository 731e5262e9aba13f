export interface Benchmark {
  /** The circumstances of the measurement. */
  readonly title: string;
  measure(): Promise<readonly Row[]>;
}

export interface Row {
  readonly what: string;
  /** One value for each round. */
  readonly figures: readonly number[];
  /** The unit of each figure; 'x' for ratios. */
  readonly unit: string;
  /** The promised limit of the median. */
  readonly promise?: { readonly atLeast: number } | { readonly atMost: number };
}

function median(figures: readonly number[]): number {
  const sorted = figures.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Whether the promise is kept; undefined if there is none. */
export function verdict({ what, figures, unit, promise }: Row): { holds?: boolean; text: string } {
  if (!promise) return { text: what };
  const figure = median(figures);
  const holds = 'atLeast' in promise ? figure >= promise.atLeast : figure <= promise.atMost;
  return { holds, text: `${what}: ${show(figure)} ${unit}, promised ${wording(promise, unit)}` };
}

export function printRows(rows: readonly Row[]): string {
  const lines = rows.map(({ what, figures, unit, promise }) => [
    what,
    `${show(median(figures))} ${unit}`,
    figures.length > 1 ? `${show(Math.min(...figures))} to ${show(Math.max(...figures))}` : '',
    promise ? wording(promise, unit) : '',
  ]);
  const table = [['', 'median', 'rounds', 'promised'], ...lines];
  const widths = table[0]!.map((_, column) =>
    Math.max(...table.map((line) => line[column]!.length)),
  );
  return table
    .map((line) => `  ${line.map((cell, at) => cell.padEnd(widths[at]!)).join('   ')}`.trimEnd())
    .map((line) => `${line}\n`)
    .join('');
}

function wording(promise: NonNullable<Row['promise']>, unit: string): string {
  return 'atLeast' in promise
    ? `at least ${promise.atLeast} ${unit}`
    : `at most ${promise.atMost} ${unit}`;
}

function show(figure: number): string {
  if (Number.isInteger(figure)) return figure.toLocaleString('en');
  return figure < 100 ? figure.toFixed(2) : Math.round(figure).toLocaleString('en');
}
