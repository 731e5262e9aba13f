import { lexicographicSortSchema, printSchema } from 'graphql';
import { readNamedSettings, type Config } from '../config.ts';
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
  const { reports } = serveSnapshot(snapshot, config, { overrides, hasAdditions: true });
  terminal.stdout.write(explained(reports));
}

function schemaSettings(terminal: Terminal) {
  const config = readSchemaConfig(terminal);
  const snapshot = readSnapshotFile(config.schemaPath, terminal);
  return { config, snapshot, overrides: readAdaptersFile(config.schemaPath, terminal) };
}

/** Reads only the settings for schemas, because these commands need none for callers. */
export function readSchemaConfig({ env, readFile }: Terminal): Config {
  return readNamedSettings(env, readFile, [
    'RECRUITING_SCHEMA',
    'SCHEMA_PREFIX',
    'GATEWAY_CONFIG',
    'UPSTREAM_TIMEOUT_MS',
    'NODE_ENV',
  ]);
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
  const served = serveSnapshot(snapshot, settings, {
    overrides,
    hasAdditions: added !== undefined,
  });
  return withAdditions(served, added) ?? served;
}

/** What was derived from a list or a type with an id, and why. */
type Report = { readonly why: readonly string[] } & Partial<ListReport & EntityReport>;

function explained(reports: readonly Report[]): string {
  if (reports.length === 0) return 'The schema has no lists and no types with an id.\n';
  const end = reports.some(({ inPages }) => inPages) ? [] : [NO_PAGES];
  return [...reports.map(paragraph), ...end].map((text) => `${text}\n`).join('\n');
}

const NO_PAGES =
  'No list is paged, so nothing is derived from any list. A paged list is a field with the arguments first: Int and ' +
  'after: String that returns an object with items, and with a pageInfo that has hasNextPage and endCursor.';

function paragraph(report: Report): string {
  const { list, type, all, connection, types, parent, foundBy, field, why } = report;
  const isOmitted = list !== undefined && all === null && connection === null;
  const facts = [
    ['all', all],
    ['connection', connection && `${connection} (${types?.connection}, ${types?.edge})`],
    ['parent', parent && `reached again by ${parent}`],
    ['entity', foundBy === null ? 'cannot be found by its id' : foundBy && `found by ${foundBy}`],
    ['field', field],
    ...why.map((reason) => [isOmitted ? 'omitted' : 'why', reason] as const),
  ] as const;
  const lines = facts.flatMap(([what, fact]) => (fact ? [`  ${what.padEnd(11)} ${fact}`] : []));
  return [list ?? type, ...lines].join('\n');
}
