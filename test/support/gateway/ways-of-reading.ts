import type { TestGateway } from './gateway.ts';

/** How many answers of the service a gateway read in each way. */
export interface WaysOfReading {
  readonly scanned: number;
  readonly general: number;
}

/** Reads the counters of a gateway. */
export async function waysOfReading({
  metrics,
}: TestGateway['gateway']): Promise<Readonly<Record<string, number>> & WaysOfReading> {
  const text = await metrics.text();
  const count = (read: keyof WaysOfReading) =>
    Number(new RegExp(`answers_total\\{read="${read}"\\} (\\d+)`).exec(text)?.[1] ?? 0);
  return { scanned: count('scanned'), general: count('general') };
}
