import type { Clock } from '../clock.ts';

/** The line that a terminal shows while an export runs. */
interface ProgressLine {
  /** @param length of the list, once it is known */
  show(records: number, length: number | undefined): void;
  /** Shows a message above the line. */
  say(message: string): void;
  end(): void;
}

const BETWEEN_MS = 200;
const BAR = 24;
const CLEAR = '\r\u001b[K';

/** On anything but a terminal, only messages are written. @param from records of earlier runs */
export function progressLine(
  stream: NodeJS.WritableStream & { readonly isTTY?: boolean },
  { clock, from }: { readonly clock: Clock; readonly from: number },
): ProgressLine {
  const isTerminal = stream.isTTY === true;
  const start = clock.elapsed();
  let shownAt = -Infinity;
  let line = '';

  return {
    show: (records, length) => {
      const now = clock.elapsed();
      if (!isTerminal || now - shownAt < BETWEEN_MS) return;
      shownAt = now;
      const rate = Math.round(((records - from) * 1000) / Math.max(1, now - start));
      line = `${count(records)} records  ${count(rate)}/s${shareOf(records, length)}`;
      stream.write(CLEAR + line);
    },
    say: (message) => {
      stream.write(`${isTerminal && line !== '' ? CLEAR : ''}${message}\n`);
      if (isTerminal) stream.write(line);
    },
    end: () => {
      if (line !== '') stream.write(CLEAR);
    },
  };
}

/** The list may have grown since its length was known. */
function shareOf(records: number, length: number | undefined): string {
  if (!length) return '';
  const share = Math.min(1, records / length);
  const filled = Math.round(share * BAR);
  return `  [${'#'.repeat(filled)}${'.'.repeat(BAR - filled)}] ${Math.floor(share * 100)} %`;
}

export function count(value: number): string {
  return value.toLocaleString('en-US');
}
