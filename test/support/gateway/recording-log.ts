import pino from 'pino';
import type { Logger } from 'pino';
import { wrote } from './written.ts';

export function recordingLog(): { log: Logger; logged: Record<string, unknown>[] } {
  const logged: Record<string, unknown>[] = [];
  const log = pino(
    { level: 'trace' },
    { write: (line: string) => void logged.push(JSON.parse(wrote(line))) },
  );
  return { log, logged };
}
