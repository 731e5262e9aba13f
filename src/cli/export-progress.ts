import type { Clock } from '../clock.ts';
import { duration } from './terminal.ts';

const BETWEEN_MS = 200;
/** Without a terminal, for a log or the mail of a scheduled job. */
const FIRST_LINE_MS = 10_000;
const BETWEEN_LINES_MS = 60_000;
const CLEAR = '\r\u001b[K';

/** Reports the progress of an export: as a line that changes on a terminal, as a few lines elsewhere. */
export function exportProgress(
  stream: NodeJS.WritableStream & { readonly isTTY?: boolean },
  clock: Clock,
) {
  const isTerminal = stream.isTTY === true;
  const start = clock.elapsed();
  let nextAt = start + (isTerminal ? 0 : FIRST_LINE_MS);
  let line = '';

  return {
    /**
     * @param records all that were written
     * @param before those of earlier runs
     */
    show: (records: number, before: number): void => {
      const now = clock.elapsed();
      if (now < nextAt) return;
      nextAt = now + (isTerminal ? BETWEEN_MS : BETWEEN_LINES_MS);
      const rate = ((records - before) * 1000) / Math.max(1, now - start);
      line = `${inWords(records)}  ${Math.round(rate).toLocaleString('en-US')}/s`;
      stream.write(isTerminal ? CLEAR + line : `${line}\n`);
    },
    /** Prints a message above the line. */
    say: (message: string): void => {
      stream.write(`${isTerminal && line !== '' ? CLEAR : ''}${message}\n`);
      if (isTerminal) stream.write(line);
    },
    /** Removes the line. @returns how long the run took */
    end: (): string => {
      if (isTerminal && line !== '') stream.write(CLEAR);
      line = '';
      return duration((clock.elapsed() - start) / 1_000);
    },
  };
}

/** For example `1,000 records`. */
export function inWords(records: number): string {
  return `${records.toLocaleString('en-US')} record${records === 1 ? '' : 's'}`;
}
