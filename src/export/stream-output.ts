import type { ExportOutput } from './export-file.ts';
import { OutputFailure } from './export-file.ts';
import { openExportState } from './export-state.ts';

/** Nobody reads the output any more, as in a pipe to `head`. */
export class ReaderLeft extends OutputFailure {
  override name = 'ReaderLeft';
}

/** Writes to a stream as fast as it is read. It cannot be resumed by another run. */
export function streamOutput(
  stream: NodeJS.WritableStream,
  { header, signal }: { readonly header: string; readonly signal: AbortSignal },
): ExportOutput {
  const state = openExportState(':memory:');
  let isBegun = false;

  return {
    get progress() {
      return state.progress;
    },
    newOf: (page) => state.newOf(page),
    write: async (lines, page) => {
      await send(lines);
      state.add({ ...page, bytes: 0 });
    },
    finish: () => send(''),
    close: async () => state.close(),
  };

  /** @throws the reason of the signal */
  async function send(lines: string): Promise<void> {
    const text = isBegun ? lines : header + lines;
    isBegun = true;
    if (text === '') return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const stop = () => reject(signal.reason as Error);
    signal.addEventListener('abort', stop, { once: true });
    stream.write(text, (error) => (error ? reject(failureOf(error)) : resolve()));
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }
}

function failureOf(error: NodeJS.ErrnoException): OutputFailure {
  const hasLeft = ['EPIPE', 'ERR_STREAM_DESTROYED', 'ECONNRESET'].includes(error.code ?? '');
  if (hasLeft) return new ReaderLeft('Nobody reads the output any more.');
  return new OutputFailure(
    `The output cannot be written (${error.code ?? error.message}). Free some space if the disk is full, and export ` +
      'again; with --output, an export can be resumed.',
  );
}
