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

/** Exit code when the schemas could not be compared. */
const NOT_COMPARED = 2;

/**
 * Compares the live schema with the snapshot.
 *
 * @returns the exit code, as of `diff`: 0 equal, or only additive changes; 1 breaking or dangerous changes
 */
export async function schemaCheck(
  options: CheckOptions,
  settings: Settings,
  terminal: Terminal,
): Promise<number> {
  try {
    return await check(options, settings, terminal);
  } catch (error) {
    throw new CommandError((error as Error).message, NOT_COMPARED);
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
  terminal.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : textOf(report));
  return difference.breaking.length + difference.dangerous.length > 0 ? 1 : 0;
}

function textOf(report: SchemaDifference & { service: string; snapshot: string }): string {
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

/** The differences as text, the worst first. */
export function listed(difference: SchemaDifference, { meanings = false } = {}): string {
  return (Object.keys(KINDS) as ChangeKind[])
    .filter((kind) => difference[kind].length > 0)
    .map((kind) => {
      const title = `${kind} (${difference[kind].length})${meanings ? `: ${KINDS[kind]}` : ''}`;
      return [title, ...difference[kind].map(({ message }) => `  ${message}`), ''].join('\n');
    })
    .join('\n');
}
