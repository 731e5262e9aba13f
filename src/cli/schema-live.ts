import { randomUUID } from 'node:crypto';
import { existsSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { GraphQLSchema } from 'graphql';
import { systemClock } from '../clock.ts';
import type { Config } from '../config.ts';
import type { State } from '../tokens/state.ts';
import type { TokenStore } from '../tokens/store.ts';
import {
  type ChangeKind,
  compareSchemas,
  KINDS,
  type SchemaDifference,
} from '../schema/compare-schemas.ts';
import { introspect, type LiveSchema } from '../schema/introspect.ts';
import { readSnapshot } from '../schema/snapshot.ts';
import { readAdaptersFile, readSnapshotFile } from '../setup/operator-files.ts';
import { proxyAgent } from '../tokens/service.ts';
import type { BearerTokens } from '../upstream/authorize.ts';
import { noTelemetry } from '../upstream/telemetry.ts';
import { openUpstream, type SendToService } from '../upstream/upstream.ts';
import { loadedFor } from './gateway-config-file.ts';
import { readSchemaConfig, servedOffline } from './schema-served.ts';
import { CommandError, commandLog, type Terminal } from './terminal.ts';
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
    const report = await askService(terminal, upstreamTimeoutMs, async (send, service) => {
      const live = await introspect(send, terminal.stop);
      warn(live, terminal);
      return { service, snapshot: schemaPath, ...(await compareSchemas(schema, live.schema)) };
    });
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

interface PullOptions {
  /** Undefined: the snapshot itself. */
  readonly output?: string | undefined;
  /** Whether to overwrite any file, and to write a schema that could not be served. */
  readonly force: boolean;
}

/** Writes the live schema into the snapshot, and prints the differences. */
export async function schemaPull(
  { output, force }: PullOptions,
  terminal: Terminal,
): Promise<void> {
  const config = readSchemaConfig(terminal);
  const path = output ?? config.schemaPath;
  const before = readExisting(path, force, terminal);
  const live = await askService(terminal, config.upstreamTimeoutMs, async (send, service) => ({
    ...(await introspect(send, terminal.stop)),
    service,
  }));
  warn(live, terminal);
  const difference = before && (await compareSchemas(before, live.schema));
  if (difference && isEqual(difference)) {
    terminal.stdout.write(
      `The schema of ${live.service} is that of ${path}: nothing was written.\n`,
    );
    return;
  }
  if (!force) await makeSureItServes(live.sdl, { ...config, schemaPath: path }, terminal);
  replaceFile(path, live.sdl);
  terminal.stdout.write(
    `The schema of ${live.service} was written to ${path}.\n` +
      (difference ? `\nWhat is different from before:\n\n${listed(difference)}\n` : '') +
      (path === config.schemaPath
        ? 'To serve it, restart the gateway. `npm run codegen` first writes what callers will see.\n'
        : 'To serve it, set RECRUITING_SCHEMA to this file.\n'),
  );
}

function warn({ warnings }: LiveSchema, { stderr }: Terminal): void {
  for (const warning of warnings) stderr.write(`${warning}\n`);
}

/** Refuses to overwrite a file that is not a schema, because the setting may name it by mistake. */
function readExisting(path: string, force: boolean, terminal: Terminal): GraphQLSchema | undefined {
  if (!existsSync(path)) return undefined;
  try {
    return readSnapshot(readSnapshotFile(path, terminal), path).schema;
  } catch (error) {
    if (force) return undefined;
    throw new CommandError(
      `${(error as Error).message} Nothing was written over it; \`--force\` does so.`,
      2,
    );
  }
}

async function makeSureItServes(sdl: string, config: Config, terminal: Terminal): Promise<void> {
  const added = await loadedFor(config, terminal);
  try {
    servedOffline(sdl, config, readAdaptersFile(config.schemaPath, terminal), added);
  } catch (error) {
    throw new CommandError(
      `Nothing was written: with the schema of the service the gateway would not start. ${(error as Error).message}\n` +
        'Correct that, and pull again. `--output <file>` in another folder writes the schema there, to be looked at; ' +
        '`--force` writes it all the same.',
    );
  }
}

/**
 * Requests the schema of the service with the access token of the store. It never refreshes: a gateway may hold the
 * claim, and reading a schema is not worth a refresh token.
 *
 * @param request called with a function that sends requests, and the host of the service
 * @throws Error with a message for the operator
 */
async function askService<Answer>(
  terminal: Terminal,
  timeoutMs: number,
  request: (send: SendToService, service: string) => Promise<Answer>,
): Promise<Answer> {
  return withReadTokens(terminal, false, async (read) => {
    const { state, store, config } = read;
    if (!state) throw noTokens(read);
    const baseUrl = state.service;
    const log = await commandLog(config, terminal);
    const upstream = openUpstream({
      baseUrl,
      agent: config.agent,
      connect: (options) => proxyAgent(terminal.env, options),
      concurrency: 1,
      timeoutMs,
      tokens: tokensOf(store, state),
      clock: systemClock,
      telemetry: {
        ...noTelemetry,
        retrying: (_cause, code, attempt) =>
          log.debug({ code, attempt }, 'sending a request again'),
      },
    });
    try {
      return await request(upstream.send, new URL(baseUrl).host);
    } catch (error) {
      throw terminal.stop.aborted
        ? new CommandError('Stopped before the service answered.')
        : error;
    } finally {
      await upstream.close();
    }
  });
}

interface StoredToken {
  readonly value: string;
  readonly generation: number;
}

/** The tokens in the store, which a gateway may refresh at any moment. */
function tokensOf(store: TokenStore, stored: State): BearerTokens<StoredToken> {
  let newest = tokenOf(stored);
  return {
    token: () => newest,
    accepted: () => {},
    refused: () => {},
    afterRefusal: async (refused, detail) => {
      newest = tokenOf((await store.read()).state ?? stored);
      if (newest.generation !== refused.generation) return newest;
      if (detail !== 'token_expired') return undefined;
      throw new CommandError(
        'The access token has expired. Run `tokens refresh`; a running gateway does it by itself.',
      );
    },
  };
}

function tokenOf({ pair: { accessToken }, generation }: State): StoredToken {
  return { value: accessToken, generation };
}

/**
 * Replaces a file atomically: a reader sees the old content or the new, even after a crash. Follows a link instead of
 * replacing it.
 */
function replaceFile(path: string, text: string): void {
  let beside: string | undefined;
  try {
    const existing = statSync(path, { throwIfNoEntry: false });
    const target = existing ? realpathSync(path) : path;
    beside = `${target}.${randomUUID()}.new`;
    const mode = existing ? existing.mode & 0o777 : 0o666;
    writeFileSync(beside, text, { flag: 'wx', flush: true, mode });
    renameSync(beside, target);
  } catch (error) {
    if (beside !== undefined) rmSync(beside, { force: true });
    const { code } = error as { code?: string };
    throw new CommandError(
      `${path} cannot be written (${code ?? 'unknown error'}). Nothing was changed. ` +
        'Check that the folder is there, that this user may write to it, and that the disk has room.',
    );
  }
}
