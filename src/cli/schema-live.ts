import { randomUUID } from 'node:crypto';
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import type { GraphQLSchema } from 'graphql';
import { systemClock } from '../clock.ts';
import {
  type ChangeKind,
  compareSchemas,
  KINDS,
  type SchemaDifference,
} from '../schema/compare-schemas.ts';
import { introspect, type LiveSchema } from '../schema/live-schema.ts';
import { readSnapshot } from '../schema/snapshot.ts';
import { readSnapshotFile } from '../setup/operator-files.ts';
import type { AccessToken } from '../tokens/keeper.ts';
import { proxyAgent } from '../tokens/service.ts';
import type { State } from '../tokens/state.ts';
import type { TokenStore } from '../tokens/store.ts';
import type { BearerTokens } from '../upstream/authorize.ts';
import { noTelemetry } from '../upstream/telemetry.ts';
import { openUpstream } from '../upstream/upstream.ts';
import { readSchemaConfig } from './schema-served.ts';
import { CommandError, type Terminal } from './terminal.ts';
import { noTokens, withReadTokens } from './tokens-store.ts';

/** The exit code if the schemas could not be compared. */
const NOT_COMPARED = 2;

/**
 * Compares the live schema with the snapshot.
 *
 * @returns the exit code, as of `diff`: 0 equal, or only additive changes; 1 breaking or dangerous changes
 */
export async function schemaCheck(
  { json }: { json: boolean },
  terminal: Terminal,
): Promise<number> {
  const config = readSchemaConfig(terminal);
  try {
    const { schemaPath, upstreamTimeoutMs } = config;
    const { schema } = readSnapshot(readSnapshotFile(schemaPath, terminal), schemaPath);
    const live = await liveSchema(terminal, upstreamTimeoutMs);
    const difference = await compareSchemas(schema, live.schema);
    const report = { service: live.service, snapshot: schemaPath, ...difference };
    terminal.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : textOf(report));
    return report.breaking.length + report.dangerous.length > 0 ? 1 : 0;
  } catch (error) {
    throw new CommandError((error as Error).message, NOT_COMPARED);
  }
}

interface CheckReport extends SchemaDifference {
  /** Its host. */
  readonly service: string;
  readonly snapshot: string;
}

function textOf(report: CheckReport): string {
  const { service, snapshot } = report;
  if (isEqual(report)) return `The schema of ${service} is that of the snapshot (${snapshot}).\n`;
  return (
    `The schema of ${service} is not that of the snapshot (${snapshot}).\n\n${listed(report, { meanings: true })}\n` +
    '`schema pull` writes it into the snapshot.\n'
  );
}

function isEqual({ breaking, dangerous, additive }: SchemaDifference): boolean {
  return breaking.length + dangerous.length + additive.length === 0;
}

/** The differences as text, the worst first. */
function listed(difference: SchemaDifference, { meanings = false } = {}): string {
  return (Object.keys(KINDS) as ChangeKind[])
    .filter((kind) => difference[kind].length > 0)
    .map((kind) => {
      const title = `${kind} (${difference[kind].length})${meanings ? `: ${KINDS[kind]}` : ''}`;
      return [title, ...difference[kind].map(({ message }) => `  ${message}`), ''].join('\n');
    })
    .join('\n');
}

/** Writes the live schema into the snapshot, or into `output`, and prints the differences. */
export async function schemaPull(
  { output }: { readonly output?: string | undefined },
  terminal: Terminal,
): Promise<void> {
  const { schemaPath, upstreamTimeoutMs } = readSchemaConfig(terminal);
  const path = output ?? schemaPath;
  const before = readExisting(path, terminal);
  const live = await liveSchema(terminal, upstreamTimeoutMs);
  const difference = before && (await compareSchemas(before, live.schema));
  if (difference && isEqual(difference)) {
    terminal.stdout.write(
      `The schema of ${live.service} is that of ${path}: nothing was written.\n`,
    );
    return;
  }
  replaceFile(path, live.sdl);
  terminal.stdout.write(
    `The schema of ${live.service} was written to ${path}.\n` +
      (difference ? `\nWhat is different from before:\n\n${listed(difference)}\n` : '') +
      (path === schemaPath
        ? 'To serve it, restart the gateway. `npm run codegen` first writes what callers will see.\n'
        : 'To serve it, set RECRUITING_SCHEMA to this file.\n'),
  );
}

/** Refuses to overwrite a file that is not a schema, because the setting may name it by mistake. */
function readExisting(path: string, terminal: Terminal): GraphQLSchema | undefined {
  if (!existsSync(path)) return undefined;
  try {
    return readSnapshot(readSnapshotFile(path, terminal), path).schema;
  } catch (error) {
    throw new CommandError(
      `${(error as Error).message} Nothing was written over it; remove the file to have it made anew.`,
      2,
    );
  }
}

/**
 * Requests the schema of the service with the access token of the store. It never refreshes: a gateway may hold the
 * claim, and reading a schema is not worth a refresh token.
 *
 * @throws Error with a message for the operator
 */
async function liveSchema(terminal: Terminal, timeoutMs: number): Promise<ServiceSchema> {
  return withReadTokens(terminal, false, async (read) => {
    const { state, store, config } = read;
    if (!state) throw noTokens(read);
    const { service: baseUrl } = state;
    const upstream = openUpstream({
      baseUrl,
      agent: config.agent,
      connect: (options) => proxyAgent(terminal.env, options),
      concurrency: 1,
      timeoutMs,
      tokens: storedTokens(store, state),
      clock: systemClock,
      telemetry: noTelemetry,
    });
    try {
      const live = await introspect(upstream.send, terminal.stop);
      for (const warning of live.warnings) terminal.stderr.write(`${warning}\n`);
      return { ...live, service: new URL(baseUrl).host };
    } catch (error) {
      throw terminal.stop.aborted
        ? new CommandError('Stopped before the service answered.')
        : error;
    } finally {
      await upstream.close();
    }
  });
}

interface ServiceSchema extends LiveSchema {
  /** Its host. */
  readonly service: string;
}

/** Those of the store, which a gateway may refresh at any moment. */
function storedTokens(store: TokenStore, first: State): BearerTokens<AccessToken> {
  return {
    token: () => tokenOf(first),
    accepted: () => {},
    refused: () => {},
    afterRefusal: async (refused, detail) => {
      const newest = tokenOf((await store.read()).state ?? first);
      if (newest.generation !== refused.generation) return newest;
      if (detail !== 'token_expired') return undefined;
      throw new CommandError(
        'The access token has expired. Run `tokens refresh`; a running gateway does it by itself.',
      );
    },
  };
}

function tokenOf({ pair, generation }: State): AccessToken {
  return { value: pair.accessToken, generation };
}

/** Replaces a file at once: a reader sees the old content or the new. */
function replaceFile(path: string, text: string): void {
  const beside = `${path}.${randomUUID()}.new`;
  try {
    writeFileSync(beside, text, { flag: 'wx', flush: true });
    renameSync(beside, path);
  } catch (error) {
    rmSync(beside, { force: true });
    const { code } = error as { code?: string };
    throw new CommandError(
      `${path} cannot be written (${code ?? 'unknown error'}). Nothing was changed. ` +
        'Check that the folder is there, that this user may write to it, and that the disk has room.',
    );
  }
}
