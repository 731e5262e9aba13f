import type { Clock } from '../clock.ts';
import { duration } from './terminal.ts';

interface Progress {
  readonly records: number;
  readonly pages: number;
}

interface ProgressOptions {
  readonly clock: Clock;
  /** The progress of earlier runs. */
  readonly from: Progress;
}

const BETWEEN_MS = 200;
/** Without a terminal, for a log or the mail of a scheduled job. */
const FIRST_LINE_MS = 10_000;
const BETWEEN_LINES_MS = 60_000;
const CLEAR = '\r\u001b[K';

/** Reports the progress of an export: as a line that changes on a terminal, as a few lines elsewhere. */
export function exportProgress(
  stream: NodeJS.WritableStream & { readonly isTTY?: boolean },
  { clock, from }: ProgressOptions,
) {
  const isTerminal = stream.isTTY === true;
  const start = clock.elapsed();
  let nextAt = start + (isTerminal ? 0 : FIRST_LINE_MS);
  let line = '';

  return {
    /** @param length the length of the list; Infinity until it is known */
    show: ({ records, pages }: Progress, length: number): void => {
      const now = clock.elapsed();
      if (now < nextAt) return;
      nextAt = now + (isTerminal ? BETWEEN_MS : BETWEEN_LINES_MS);
      const rate = ((records - from.records) * 1000) / Math.max(1, now - start);
      line = `${count(records, 'record')}  ${count(pages, 'page')}  ${count(Math.round(rate))}/s`;
      // The list may have grown since its length was known.
      if (length < Infinity) line += `  ${Math.floor(Math.min(1, records / length) * 100)} %`;
      if (length < Infinity && records < length && rate > 0)
        line += `  ${duration(Math.ceil((length - records) / rate))} left`;
      stream.write(isTerminal ? CLEAR + line : `${line}\n`);
    },
    /** Prints a message above the line. */
    say: (message: string): void => {
      stream.write(`${isTerminal && line !== '' ? CLEAR : ''}${message}\n`);
      if (isTerminal) stream.write(line);
    },
    /** Removes the line. @returns what the run did, such as `Read 3 pages in 2 s.` */
    end: ({ pages }: Progress): string => {
      if (isTerminal && line !== '') stream.write(CLEAR);
      line = '';
      const time = clock.elapsed() - start;
      const took = time < 1_000 ? 'less than 1 s' : duration(time / 1_000);
      return `Read ${count(pages - from.pages, 'page')} in ${took}.`;
    },
  };
}

/** @param noun in the singular, such as `record` */
export function count(value: number, noun?: string): string {
  const number = value.toLocaleString('en-US');
  return noun === undefined ? number : `${number} ${noun}${value === 1 ? '' : 's'}`;
}
