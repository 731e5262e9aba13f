import type { Config } from '../config.ts';
import {
  type ChangeKind,
  compareSchemas,
  KINDS,
  type SchemaDifference,
} from '../schema/live/compare-schemas.ts';
import { readSnapshot } from '../schema/snapshot.ts';
import { readLiveSchema } from './live-schema.ts';
import { readSnapshotFile } from './operator-files.ts';
import { CommandError, type Terminal } from './terminal.ts';

interface CheckOptions {
  readonly json: boolean;
}

type Settings = Pick<Config, 'schemaPath' | 'upstreamTimeoutMs'>;

/** Nothing can be said of the schemas: neither that they are alike nor that they are not. */
const CANNOT_TELL = 2;

/**
 * Compares the live schema with the snapshot; gives the exit code, as `diff` does: 0 alike, or only additive
 * changes; 1 breaking or dangerous ones. It is 2 when that cannot be told.
 */
export async function schemaCheck(
  options: CheckOptions,
  settings: Settings,
  terminal: Terminal,
): Promise<number> {
  try {
    return await check(options, settings, terminal);
  } catch (error) {
    throw new CommandError((error as Error).message, CANNOT_TELL);
  }
}

async function check(
  { json }: CheckOptions,
  { schemaPath, upstreamTimeoutMs }: Settings,
  terminal: Terminal,
): Promise<number> {
  const snapshot = readSnapshot(readSnapshotFile(schemaPath, terminal), schemaPath);
  const live = await readLiveSchema(terminal, upstreamTimeoutMs);
  const difference = await compareSchemas(snapshot, live);
  const report = { service: live.service, snapshot: schemaPath, ...difference };
  terminal.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : told(report));
  return difference.breaking.length + difference.dangerous.length > 0 ? 1 : 0;
}

function told(report: SchemaDifference & { service: string; snapshot: string }): string {
  const { service, snapshot } = report;
  if (isEqual(report)) return `The schema of ${service} is that of the snapshot (${snapshot}).\n`;
  return (
    `The schema of ${service} is not that of the snapshot (${snapshot}).\n\n${listed(report, { meanings: true })}\n` +
    '`schema pull` writes it into the snapshot.\n'
  );
}

export function isEqual({ breaking, dangerous, additive }: SchemaDifference): boolean {
  return breaking.length + dangerous.length + additive.length === 0;
}

/** For people, the worst first. */
export function listed(difference: SchemaDifference, { meanings = false } = {}): string {
  return (Object.keys(KINDS) as ChangeKind[])
    .filter((kind) => difference[kind].length > 0)
    .map((kind) => {
      const title = `${kind} (${difference[kind].length})${meanings ? `: ${KINDS[kind]}` : ''}`;
      return [title, ...difference[kind].map(({ message }) => `  ${message}`), ''].join('\n');
    })
    .join('\n');
}
