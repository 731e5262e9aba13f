import { lexicographicSortSchema, printSchema } from 'graphql';
import { readNamedSettings, type Config, type SettingName } from '../config.ts';
import type { EntityReport } from '../schema/derivation/entities.ts';
import type { ListReport } from '../schema/derivation/adapters.ts';
import {
  serveSnapshot,
  type ServedSchema,
  type SnapshotSettings,
} from '../schema/served/served-schema.ts';
import { readAdaptersFile, readSnapshotFile } from '../setup/operator-files.ts';
import type { Additions } from '../additions/additions.ts';
import { withAdditions } from '../additions/with-additions.ts';
import { loadedFor } from './gateway-config-file.ts';
import type { Terminal } from './terminal.ts';

/** Prints what callers see, or the SDL from which a supergraph is composed. */
export async function schemaPrint(
  { subgraph }: { subgraph: boolean },
  terminal: Terminal,
): Promise<void> {
  const { snapshot, config, overrides } = schemaSettings(terminal);
  const added = await loadedFor(config, terminal);
  const served = servedOffline(snapshot, config, overrides, added);
  terminal.stdout.write(subgraph ? served.subgraphSdl() : servedSdl(served));
}

/** Explains what is derived from each list and each type with an id, and why. */
export async function schemaExplain(
  { all, json }: { all: boolean; json: boolean },
  terminal: Terminal,
): Promise<void> {
  const { snapshot, config, overrides } = schemaSettings(terminal);
  const parts = { ...config, mutations: 'off' } as const;
  // What a company adds is not loaded, because nothing is derived from it. adapters.json may name it all the same.
  const { reports } = serveSnapshot(snapshot, parts, { overrides, hasAdditions: true });
  terminal.stdout.write(json ? `${JSON.stringify(reports, null, 2)}\n` : explained(reports, all));
}

function schemaSettings(terminal: Terminal) {
  const config = readSchemaConfig(terminal);
  const snapshot = readSnapshotFile(config.schemaPath, terminal);
  return { config, snapshot, overrides: readAdaptersFile(config.schemaPath, terminal) };
}

/** Reads only the settings for schemas, because these commands need none for callers. */
export function readSchemaConfig(terminal: Terminal): Config {
  return readNamedSettings(terminal.env, terminal.readFile, [
    ...Object.values(OF_SCHEMA),
    ...BESIDE_SCHEMA,
  ]);
}

/** The settings on which the schema depends, by their names in `SnapshotSettings`. */
const OF_SCHEMA = {
  schemaPath: 'RECRUITING_SCHEMA',
  schemaPrefix: 'SCHEMA_PREFIX',
  connectionMax: 'CONNECTION_MAX',
  drainMaxItems: 'DRAIN_MAX_ITEMS',
  totalCountSeconds: 'TOTAL_COUNT_SECONDS',
} satisfies Record<keyof OfflineSettings, SettingName>;

/** For what a company adds, and for requests to the service. */
const BESIDE_SCHEMA = ['NODE_ENV', 'GATEWAY_CONFIG', 'UPSTREAM_TIMEOUT_MS'] satisfies SettingName[];

/** `MUTATIONS` does not change the schema: only warnings depend on it. */
type OfflineSettings = Omit<SnapshotSettings, 'mutations'>;

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
  settings: OfflineSettings,
  overrides: unknown,
  added?: Additions,
): ServedSchema {
  const parts = { ...settings, mutations: 'off' } as const;
  const served = serveSnapshot(snapshot, parts, { overrides, hasAdditions: added !== undefined });
  return withAdditions(served, added) ?? served;
}

type Report = ListReport | EntityReport;

/**
 * Describes what was derived from each list and each type with an id, and why.
 *
 * @param all whether lists that are not paged, and types that cannot be found by their id, are listed even if there are
 *   many; otherwise they are counted
 */
function explained(reports: readonly Report[], all: boolean): string {
  if (reports.length === 0) return 'The schema has no lists and no types with an id.\n';
  const groups = [
    ['lists are not paged, so nothing is derived from them', reports.filter(isPlainList)],
    ['types cannot be found by their id', reports.filter(isNotFound)],
  ] as const;
  const counted = groups.filter(([, group]) => !all && group.length > FEW);
  const left = reports.filter((report) => !counted.some(([, group]) => group.includes(report)));
  const end = [
    ...counted.map(([what, group]) => `${group.length} ${what}: ${someOf(group)}.`),
    ...(counted.length > 0 ? [FOR_ALL] : []),
    ...(reports.some((report) => 'list' in report && report.inPages) ? [] : [NO_PAGES]),
  ];
  return [...left.map(explainedReport), ...(end.length > 0 ? [end.join('\n')] : [])]
    .map((text) => `${text}\n`)
    .join('\n');
}

/** Up to this number they are listed. */
const FEW = 5;
const FOR_ALL =
  '`schema explain --all` lists all of them with the reasons; `--json` is for programs.';
const NO_PAGES =
  'No list is paged, so nothing is derived from any list. A paged list is a field with the arguments first: Int and ' +
  'after: String that returns an object with items, and with a pageInfo that has hasNextPage and endCursor.';

function isPlainList(report: Report): boolean {
  return 'list' in report && !report.inPages;
}

function isNotFound(report: Report): boolean {
  return 'type' in report && report.foundBy === null;
}

function someOf(group: readonly Report[]): string {
  const names = group.map((report) => ('list' in report ? report.list : report.type));
  return [...names.slice(0, 3), `and ${names.length - 3} more`].join(', ');
}

function explainedReport(report: Report): string {
  return 'list' in report ? explainedList(report) : explainedEntity(report);
}

function explainedEntity({ type, foundBy, field, why }: EntityReport): string {
  const facts = [
    ['entity', foundBy === null ? 'cannot be found by its id' : `found by ${foundBy}`],
    ...(field ? [['field', field]] : []),
    ...why.map((reason) => ['why', reason]),
  ];
  return paragraph(type, facts);
}

function explainedList({ list, all, connection, types, parent, why }: ListReport): string {
  const isDerived = all !== null || connection !== null;
  const facts = [
    ...(all ? [['all', all]] : []),
    ...(types ? [['connection', `${connection} (${types.connection}, ${types.edge})`]] : []),
    ...(parent ? [['parent', `reached again by ${parent}`]] : []),
    ...why.map((reason) => [isDerived ? 'why' : 'omitted', reason]),
  ];
  return paragraph(list, facts);
}

function paragraph(title: string, facts: readonly (readonly string[])[]): string {
  return [title, ...facts.map(([what, fact]) => `  ${what!.padEnd(11)} ${fact}`)].join('\n');
}
