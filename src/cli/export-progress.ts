import type { Clock } from '../clock.ts';
import { duration } from './terminal.ts';

const BETWEEN_LINES_MS = 10_000;

/** Reports the progress of an export, for its operator and for the log of a scheduled job: a line each 10 seconds. */
export function exportProgress(stream: NodeJS.WritableStream, clock: Clock) {
  const start = clock.elapsed();
  let nextAt = start + BETWEEN_LINES_MS;
  const say = (message: string): void => void stream.write(`${message}\n`);

  return {
    say,
    /**
     * @param records all that were written
     * @param before those of earlier runs
     */
    show: (records: number, before: number): void => {
      const now = clock.elapsed();
      if (now < nextAt) return;
      nextAt = now + BETWEEN_LINES_MS;
      const rate = ((records - before) * 1000) / (now - start);
      say(`${inWords(records)}  ${Math.round(rate).toLocaleString('en-US')}/s`);
    },
    /** How long the run took. */
    took: (): string => duration((clock.elapsed() - start) / 1_000),
  };
}

/** For example `1,000 records`. */
export function inWords(records: number): string {
  return `${records.toLocaleString('en-US')} record${records === 1 ? '' : 's'}`;
}
