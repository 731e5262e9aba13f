import { writeFileSync } from 'node:fs';
import { CriticalityLevel, diff } from '@graphql-inspector/core';
import { buildSchema, lexicographicSortSchema, printSchema, type GraphQLSchema } from 'graphql';
import { withAdditions } from '../additions/with-additions.ts';
import { systemClock } from '../clock.ts';
import { readConfig } from '../config.ts';
import { onOneLine, OperatorMistake } from '../errors.ts';
import type { Report } from '../schema/derived.ts';
import { introspect } from '../schema/live-schema.ts';
import { serveSnapshot, type ServedSchema } from '../schema/served/served-schema.ts';
import { readSnapshot } from '../schema/snapshot.ts';
import { readAdaptersFile, readSnapshotFile } from '../setup/operator-files.ts';
import { proxyAgent } from '../tokens/service.ts';
import type { State } from '../tokens/state.ts';
import type { BearerTokens } from '../upstream/authorize.ts';
import { noTelemetry } from '../upstream/telemetry.ts';
import { openUpstream } from '../upstream/upstream.ts';
import { loadGatewayConfig } from './gateway-config-file.ts';
import type { Terminal } from './terminal.ts';
import { present, readTokens } from './tokens-store.ts';

/** Prints what callers see, or the SDL from which a supergraph is composed. */
export async function schemaPrint({ subgraph }: { subgraph: boolean }, terminal: Terminal) {
  const config = readConfig(terminal.env, 'command');
  const snapshot = readSnapshotFile(config.schemaPath);
  const overrides = readAdaptersFile(config.schemaPath);
  const added = await loadGatewayConfig(config);
  const served = withAdditions(serveSnapshot(snapshot, config, overrides), added);
  terminal.stdout.write(subgraph ? served.subgraphSdl() : servedSdl(served));
}

/** Explains what is derived from each list and each type with an id, and why. */
export async function schemaExplain(_options: object, { env, stdout }: Terminal): Promise<void> {
  const config = readConfig(env, 'command');
  const snapshot = readSnapshotFile(config.schemaPath);
  // What a company adds is not loaded, because nothing is derived from it. adapters.json may name it all the same.
  const overrides = readAdaptersFile(config.schemaPath);
  const { reports } = serveSnapshot(snapshot, config, overrides);
  const nothing = 'The schema has no lists and no types with an id.\n';
  stdout.write(reports.map((report) => `${paragraph(report)}\n`).join('\n') || nothing);
}

function paragraph({ subject, facts, why }: Report): string {
  const all = [...Object.entries(facts), ...why.map((reason) => ['why', reason] as const)];
  const lines = all.flatMap(([what, fact]) => (fact ? [`  ${what.padEnd(11)} ${fact}`] : []));
  return [subject, ...lines].join('\n');
}

/** The SDL that callers see, sorted so that a diff shows only real changes. */
export function servedSdl({ schema }: Pick<ServedSchema, 'schema'>): string {
  return `${printSchema(lexicographicSortSchema(schema))}\n`;
}

/** The kinds of change, the worst first. docs/schema.md says what each means to callers. */
const KINDS = [
  [CriticalityLevel.Breaking, 'breaking'],
  [CriticalityLevel.Dangerous, 'dangerous'],
  [CriticalityLevel.NonBreaking, 'additive'],
] as const;

/**
 * Compares the live schema with the snapshot.
 *
 * @returns the exit code, as of `diff`: 0 equal, or only additive changes; 1 breaking or dangerous changes
 */
export async function schemaCheck(_options: object, terminal: Terminal): Promise<number> {
  const { schemaPath } = readConfig(terminal.env, 'command');
  try {
    const { schema } = readSnapshot(readSnapshotFile(schemaPath), schemaPath);
    const { live, host } = await liveSchema(terminal);
    const changes = await diff(comparable(schema), comparable(live.schema));
    const lines = KINDS.flatMap(([level, kind]) =>
      changes
        .filter(({ criticality }) => criticality.level === level)
        .map(({ message }) => `  ${kind.padEnd(10)} ${onOneLine(message)}\n`),
    );
    terminal.stdout.write(
      changes.length === 0
        ? `The schema of ${host} is that of the snapshot (${schemaPath}).\n`
        : `The schema of ${host} is not that of the snapshot (${schemaPath}).\n\n${lines.join('')}\n` +
            '`schema pull` writes it into the snapshot.\n',
    );
    return changes.some(({ criticality: { level } }) => level !== CriticalityLevel.NonBreaking)
      ? 1
      : 0;
  } catch (error) {
    // Exit code 2: not compared.
    throw new OperatorMistake((error as Error).message);
  }
}

/** Without what directives of the service say in a snapshot: an introspection does not show it. */
function comparable(schema: GraphQLSchema): GraphQLSchema {
  return buildSchema(printSchema(lexicographicSortSchema(schema)));
}

/** Writes the live schema into the snapshot. */
export async function schemaPull(_options: object, terminal: Terminal): Promise<void> {
  const { schemaPath } = readConfig(terminal.env, 'command');
  const { live, host } = await liveSchema(terminal);
  writeFileSync(schemaPath, live.sdl);
  terminal.stdout.write(
    `The schema of ${host} was written to ${schemaPath}. To serve it, restart the gateway. ` +
      '`schema print` first shows what callers will see, if adapters.json still fits.\n',
  );
}

/**
 * Requests the schema of the service with the access token of the store. It never refreshes: a gateway may hold the
 * claim, and reading a schema is not worth a refresh token.
 *
 * @throws Error with a message for the operator
 */
async function liveSchema(terminal: Terminal) {
  const tokens = await readTokens(terminal);
  const { config } = tokens;
  const state = present(tokens);
  const upstream = openUpstream({
    baseUrl: state.service,
    agent: config.agent,
    connect: (options) => proxyAgent(terminal.env, options),
    concurrency: 1,
    timeoutMs: config.upstreamTimeoutMs,
    tokens: storedTokens(state),
    clock: systemClock,
    telemetry: noTelemetry,
  });
  try {
    const live = await introspect(upstream.send, terminal.stop);
    for (const warning of live.warnings) terminal.stderr.write(`${warning}\n`);
    return { live, host: new URL(state.service).host };
  } finally {
    await upstream.close();
  }
}

/** Those of the store, as they are. */
function storedTokens({ pair, generation }: State): BearerTokens {
  return {
    token: () => ({ value: pair.accessToken, generation }),
    accepted: () => {},
    refused: () => {},
    afterRefusal: async (_refused, detail) => {
      if (detail !== 'token_expired') return undefined;
      throw new Error(
        'The access token has expired. Run `tokens refresh`; a running gateway does it by itself.',
      );
    },
  };
}
