import { lexicographicSortSchema, printSchema } from 'graphql';
import { readConfig } from '../config.ts';
import type { Report } from '../schema/derived.ts';
import {
  serveSnapshot,
  type ServedSchema,
  type SnapshotSettings,
} from '../schema/served/served-schema.ts';
import { readAdaptersFile, readSnapshotFile } from '../setup/operator-files.ts';
import type { Additions } from '../additions/additions.ts';
import { withAdditions } from '../additions/with-additions.ts';
import { loadGatewayConfig } from './gateway-config-file.ts';
import type { Terminal } from './terminal.ts';

/** Prints what callers see, or the SDL from which a supergraph is composed. */
export async function schemaPrint(
  { subgraph }: { subgraph: boolean },
  terminal: Terminal,
): Promise<void> {
  const { snapshot, config, overrides } = schemaSettings(terminal);
  const added = await loadGatewayConfig(config);
  const served = servedOffline(snapshot, config, overrides, added);
  terminal.stdout.write(subgraph ? served.subgraphSdl() : servedSdl(served));
}

/** Explains what is derived from each list and each type with an id, and why. */
export async function schemaExplain(_options: object, terminal: Terminal): Promise<void> {
  const { snapshot, config, overrides } = schemaSettings(terminal);
  // What a company adds is not loaded, because nothing is derived from it. adapters.json may name it all the same.
  const { reports } = serveSnapshot(snapshot, config, { overrides });
  terminal.stdout.write(explained(reports));
}

function schemaSettings({ env }: Terminal) {
  const config = readConfig(env, 'command');
  const snapshot = readSnapshotFile(config.schemaPath);
  return { config, snapshot, overrides: readAdaptersFile(config.schemaPath) };
}

/** The SDL that callers see, sorted so that a diff shows only real changes. */
export function servedSdl({ schema }: Pick<ServedSchema, 'schema'>): string {
  return `${printSchema(lexicographicSortSchema(schema))}\n`;
}

/**
 * Makes the schema that is served for a snapshot, with what a company adds. It can be printed, but not executed.
 *
 * @throws OperatorMistake
 */
export function servedOffline(
  snapshot: string,
  settings: SnapshotSettings,
  overrides: unknown,
  added?: Additions,
): ServedSchema {
  const served = serveSnapshot(snapshot, settings, { overrides });
  return withAdditions(served, added) ?? served;
}

function explained(reports: readonly Report[]): string {
  if (reports.length === 0) return 'The schema has no lists and no types with an id.\n';
  return reports.map((report) => `${paragraph(report)}\n`).join('\n');
}

function paragraph({ subject, facts, why }: Report): string {
  const all = [...Object.entries(facts), ...why.map((reason) => ['why', reason] as const)];
  const lines = all.flatMap(([what, fact]) => (fact ? [`  ${what.padEnd(11)} ${fact}`] : []));
  return [subject, ...lines].join('\n');
}
