import type { Config } from '../config.ts';
import { compareLive } from '../schema/live/compare-live.ts';
import { type ChangeKind, KINDS, type SchemaDifference } from '../schema/live/compare-schemas.ts';
import { readSnapshot } from '../schema/snapshot.ts';
import { readSnapshotFile } from '../setup/operator-files.ts';
import type { DocumentsReport } from './check-documents.ts';
import { askService } from './live-schema.ts';
import { CommandError, type Terminal } from './terminal.ts';

interface CheckOptions {
  readonly json: boolean;
  /** A folder with operations, or a manifest of trusted documents. */
  readonly documents?: string | undefined;
}

/** Exit code when the schemas could not be compared. */
const NOT_COMPARED = 2;

/**
 * Compares the live schema with the snapshot.
 *
 * @returns the exit code, as of `diff`: 0 equal, or only additive changes; 1 breaking or dangerous changes, or
 * documents that break
 */
export async function schemaCheck(
  options: CheckOptions,
  config: Config,
  terminal: Terminal,
): Promise<number> {
  try {
    return await check(options, config, terminal);
  } catch (error) {
    throw new CommandError((error as Error).message, NOT_COMPARED);
  }
}

async function check(
  { json, documents: path }: CheckOptions,
  config: Config,
  terminal: Terminal,
): Promise<number> {
  const { schemaPath, upstreamTimeoutMs } = config;
  // Imported only if there are documents: it takes longest to derive what is served.
  const documents = path === undefined ? undefined : await import('./check-documents.ts');
  const checkDocuments = await documents?.documentsCheck(path!, config, terminal);
  const snapshot = readSnapshot(readSnapshotFile(schemaPath, terminal), schemaPath);
  const { stop: signal } = terminal;
  const live = await askService(terminal, upstreamTimeoutMs, async (execute, service) => ({
    ...(await compareLive({ snapshot, execute, signal, maxRequests: MAX_REQUESTS })),
    service,
  }));
  const { service, difference, unseen } = live;
  const report = {
    service,
    snapshot: schemaPath,
    ...difference,
    unseen,
    ...(checkDocuments ? { documents: checkDocuments(live.acceptedSdl()) } : {}),
  };
  const text = () =>
    [textOf(report), report.documents && documents?.documentsText(report.documents)]
      .filter((part) => part !== undefined)
      .join('\n');
  terminal.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : text());
  if (report.documents?.unchecked !== undefined) return NOT_COMPARED;
  const broken = report.documents?.broken ?? [];
  return difference.breaking.length + difference.dangerous.length + broken.length > 0 ? 1 : 0;
}

/** Of a check without introspection. */
const MAX_REQUESTS = 500;

interface CheckReport extends SchemaDifference {
  readonly service: string;
  readonly snapshot: string;
  /** What was not compared, in sentences. */
  readonly unseen: readonly string[];
  readonly documents?: DocumentsReport;
}

function textOf(report: CheckReport): string {
  const { service, snapshot, unseen } = report;
  if (unseen.length > 0) {
    const found = isEqual(report)
      ? `${service} accepts everything in the snapshot (${snapshot}) that could be checked.\n`
      : `${service} no longer accepts the snapshot (${snapshot}).\n\n${listed(report, { meanings: true })}`;
    return `${found}\n${unseen.map((sentence) => `${sentence}\n`).join('')}`;
  }
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
