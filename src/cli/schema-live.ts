import { writeFileSync } from 'node:fs';
import { systemClock } from '../clock.ts';
import { readConfig } from '../config.ts';
import { OperatorMistake } from '../errors.ts';
import {
  type ChangeKind,
  compareSchemas,
  KINDS,
  type SchemaDifference,
} from '../schema/compare-schemas.ts';
import { introspect, type LiveSchema } from '../schema/live-schema.ts';
import { readSnapshot } from '../schema/snapshot.ts';
import { readSnapshotFile } from '../setup/operator-files.ts';
import { proxyAgent } from '../tokens/service.ts';
import type { State } from '../tokens/state.ts';
import type { BearerTokens } from '../upstream/authorize.ts';
import { noTelemetry } from '../upstream/telemetry.ts';
import { openUpstream } from '../upstream/upstream.ts';
import type { Terminal } from './terminal.ts';
import { present, readTokens } from './tokens-store.ts';

/**
 * Compares the live schema with the snapshot.
 *
 * @returns the exit code, as of `diff`: 0 equal, or only additive changes; 1 breaking or dangerous changes
 */
export async function schemaCheck(_options: object, terminal: Terminal): Promise<number> {
  const { schemaPath } = readConfig(terminal.env, 'command');
  try {
    const { schema } = readSnapshot(readSnapshotFile(schemaPath), schemaPath);
    const live = await liveSchema(terminal);
    const difference = await compareSchemas(schema, live.schema);
    const changes = listed(difference);
    terminal.stdout.write(
      changes === ''
        ? `The schema of ${live.service} is that of the snapshot (${schemaPath}).\n`
        : `The schema of ${live.service} is not that of the snapshot (${schemaPath}).\n\n${changes}\n` +
            '`schema pull` writes it into the snapshot.\n',
    );
    return difference.breaking.length + difference.dangerous.length > 0 ? 1 : 0;
  } catch (error) {
    // Exit code 2: not compared.
    throw new OperatorMistake((error as Error).message);
  }
}

/** The differences as text, the worst first. */
function listed(difference: SchemaDifference): string {
  return (Object.keys(KINDS) as ChangeKind[])
    .filter((kind) => difference[kind].length > 0)
    .map((kind) => {
      const title = `${kind} (${difference[kind].length}): ${KINDS[kind]}`;
      return [title, ...difference[kind].map((message) => `  ${message}`), ''].join('\n');
    })
    .join('\n');
}

/** Writes the live schema into the snapshot. */
export async function schemaPull(_options: object, terminal: Terminal): Promise<void> {
  const { schemaPath } = readConfig(terminal.env, 'command');
  const live = await liveSchema(terminal);
  writeFileSync(schemaPath, live.sdl);
  terminal.stdout.write(
    `The schema of ${live.service} was written to ${schemaPath}. To serve it, restart the gateway. ` +
      '`schema print` first shows what callers will see, if adapters.json still fits.\n',
  );
}

/**
 * Requests the schema of the service with the access token of the store. It never refreshes: a gateway may hold the
 * claim, and reading a schema is not worth a refresh token.
 *
 * @throws Error with a message for the operator
 */
async function liveSchema(terminal: Terminal): Promise<ServiceSchema> {
  const tokens = await readTokens(terminal);
  const { config } = tokens;
  const state = present(tokens);
  const { service: baseUrl } = state;
  const upstream = openUpstream({
    baseUrl,
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
    return { ...live, service: new URL(baseUrl).host };
  } finally {
    await upstream.close();
  }
}

interface ServiceSchema extends LiveSchema {
  /** Its host. */
  readonly service: string;
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
