export interface Allowed {
  /** A share of the mean. */
  readonly share: number;
  /** Smaller growth is noise. */
  readonly least: number;
}

/** The growth of the straight line through the samples, from the first to the last one, if that is too much. */
export function growthOf(
  name: string,
  samples: readonly number[],
  { share, least }: Allowed,
): string[] {
  const mean = average(samples);
  const middle = (samples.length - 1) / 2;
  const slope =
    average(samples.map((sample, index) => (index - middle) * (sample - mean))) /
    average(samples.map((_, index) => (index - middle) ** 2));
  const growth = slope * (samples.length - 1);
  return growth > Math.max(least, share * mean)
    ? [`${name} grows: by ${Math.round(growth)} of ${Math.round(mean)}`]
    : [];
}

function average(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}
