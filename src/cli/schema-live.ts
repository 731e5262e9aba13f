import { randomUUID } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import type { GraphQLSchema } from 'graphql';
import { systemClock } from '../clock.ts';
import type { Config } from '../config.ts';
import { compareLive } from '../schema/live/compare-live.ts';
import {
  type ChangeKind,
  compareSchemas,
  KINDS,
  type SchemaDifference,
} from '../schema/live/compare-schemas.ts';
import {
  introspect,
  onOneLine,
  schemaOfSdl,
  type Execute,
  type LiveSchema,
} from '../schema/live/introspect.ts';
import { readSnapshot } from '../schema/snapshot.ts';
import { readAdaptersFile, readSnapshotFile } from '../setup/operator-files.ts';
import type { StoredTokens, TokenStore } from '../tokens/store/token-store.ts';
import { createServiceExecutor, type BearerTokens } from '../upstream/executor.ts';
import { noTelemetry } from '../upstream/connections.ts';
import type { DocumentsReport } from './check-documents.ts';
import { loadedFor } from './gateway-config-file.ts';
import { readSchemaConfig, servedOffline } from './schema-served.ts';
import { readSdl, WHERE_SDL_IS_FROM } from './schema-source.ts';
import { CommandError, commandLog, type Terminal } from './terminal.ts';
import { noTokens, readTokenConfig, withTokenStore, type TokenSession } from './token-session.ts';

interface CheckOptions {
  readonly json: boolean;
  /** A folder with operations, or a manifest of trusted documents. */
  readonly documents?: string | undefined;
  /** A file or an address with SDL, which takes the place of the live schema: no tokens are needed. */
  readonly against?: string | undefined;
}

/** The exit code if the schemas could not be compared. */
const NOT_COMPARED = 2;

/**
 * Compares the live schema, or the one that `--against` names, with the snapshot.
 *
 * @returns the exit code, as of `diff`: 0 equal, or only additive changes; 1 breaking or dangerous changes, or
 * documents that break
 */
export async function schemaCheck(options: CheckOptions, terminal: Terminal): Promise<number> {
  const config = readSchemaConfig(terminal);
  try {
    return await check(options, config, terminal);
  } catch (error) {
    throw new CommandError((error as Error).message, NOT_COMPARED);
  }
}

async function check(
  { json, documents: path, against }: CheckOptions,
  config: Config,
  terminal: Terminal,
): Promise<number> {
  const { schemaPath } = config;
  // Imported only if there are documents, because deriving the served schema takes longest.
  const documents = path === undefined ? undefined : await import('./check-documents.ts');
  const checkDocuments = await documents?.documentsCheck(
    path!,
    config,
    terminal,
    against !== undefined,
  );
  const snapshot = readSnapshot(readSnapshotFile(schemaPath, terminal), schemaPath);
  const live =
    against === undefined
      ? await comparedWithService(snapshot, config, terminal)
      : await comparedWithSdl(snapshot, against, config, terminal);
  const { service, difference } = live;
  const adapters = checkDocuments ? live.readAdapters() : undefined;
  const report = {
    service,
    snapshot: schemaPath,
    ...difference,
    ...(checkDocuments ? { documents: checkDocuments(live.sdl, adapters) } : {}),
  };
  const text = () =>
    [
      textOf(report, against !== undefined),
      report.documents &&
        documents?.documentsText(
          report.documents,
          against === undefined
            ? 'the live schema'
            : `the schema of ${service}${adapters === undefined ? '' : ' and the adapters.json beside it'}`,
        ),
    ]
      .filter((part) => part !== undefined)
      .join('\n');
  terminal.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : text());
  if (report.documents?.unchecked !== undefined) return NOT_COMPARED;
  const broken = report.documents?.broken ?? [];
  return difference.breaking.length + difference.dangerous.length + broken.length > 0 ? 1 : 0;
}

function comparedWithService(
  snapshot: GraphQLSchema,
  { upstreamTimeoutMs }: Config,
  terminal: Terminal,
) {
  const { stop: signal } = terminal;
  return askService(terminal, upstreamTimeoutMs, async (execute, service) => ({
    ...(await compareLive({ snapshot, execute, signal })),
    service,
    readAdapters: () => undefined,
  }));
}

async function comparedWithSdl(
  snapshot: GraphQLSchema,
  against: string,
  { agent }: Config,
  terminal: Terminal,
) {
  const { name, sdl, readAdapters } = await readSdl(against, agent, terminal);
  const other = schemaIn(sdl, name);
  const difference = await compareSchemas(snapshot, other);
  return { service: name, difference, sdl, readAdapters };
}

function schemaIn(sdl: string, name: string): LiveSchema {
  try {
    return schemaOfSdl(sdl, name);
  } catch (error) {
    const { cause, message } = error as Error;
    const why = cause instanceof Error ? `${onOneLine(cause.message)}.` : message;
    throw new CommandError(`${name} is not the SDL of a schema: ${why} ${WHERE_SDL_IS_FROM}`);
  }
}

interface CheckReport extends SchemaDifference {
  /** Its host, or what `--against` names. */
  readonly service: string;
  readonly snapshot: string;
  readonly documents?: DocumentsReport;
}

function textOf(report: CheckReport, isOfFile: boolean): string {
  const { service, snapshot } = report;
  if (isEqual(report)) return `The schema of ${service} is that of the snapshot (${snapshot}).\n`;
  return (
    `The schema of ${service} is not that of the snapshot (${snapshot}).\n\n${listed(report, { meanings: true })}\n` +
    (isOfFile
      ? 'To serve it, replace the snapshot by it.\n'
      : '`schema pull` writes it into the snapshot.\n')
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
  const live = await askService(terminal, config.upstreamTimeoutMs, async (execute, service) => ({
    ...(await introspect(execute, terminal.stop)),
    service,
  }));
  const difference = before && (await compareSchemas(before, live));
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

/** Refuses to overwrite a file that is not a schema, because the setting may name it by mistake. */
function readExisting(path: string, force: boolean, terminal: Terminal): GraphQLSchema | undefined {
  if (!existsSync(path)) return undefined;
  try {
    return readSnapshot(readSnapshotFile(path, terminal), path);
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
  request: (execute: Execute, service: string) => Promise<Answer>,
): Promise<Answer> {
  const config = readTokenConfig(terminal, { refusesUnknown: false });
  const work = async (session: TokenSession) => {
    const { stored, store } = session;
    if (!stored) throw await noTokens(session);
    const { baseUrl } = stored;
    const log = await commandLog(config, terminal);
    const upstream = createServiceExecutor({
      baseUrl,
      agent: config.agent,
      proxy: terminal.proxyFor(baseUrl),
      concurrency: 1,
      timeoutMs,
      tokens: tokensOf(store, stored),
      clock: systemClock,
      telemetry: {
        ...noTelemetry,
        retrying: (_cause, code, attempt) =>
          log.debug({ code, attempt }, 'sending a request again'),
      },
    });
    try {
      return await request(upstream.execute, new URL(baseUrl).host);
    } catch (error) {
      throw terminal.stop.aborted
        ? new CommandError('Stopped before the service answered.')
        : error;
    } finally {
      await upstream.close();
    }
  };
  return withTokenStore(terminal, 'inspect', work, config);
}

interface StoredToken {
  readonly value: string;
  readonly generation: number;
}

/** The tokens in the store, which a gateway may refresh at any moment. */
function tokensOf(store: TokenStore, stored: StoredTokens): BearerTokens<StoredToken> {
  let newest = tokenOf(stored);
  return {
    accessToken: async () => newest,
    accepted: () => {},
    refused: () => {},
    afterRefusal: async (refused, detail) => {
      newest = tokenOf((await store.read()) ?? stored);
      if (newest.generation !== refused.generation) return newest;
      if (detail !== 'token_expired') return undefined;
      throw new CommandError(
        'The access token has expired. Run `tokens refresh`; a running gateway does it by itself.',
      );
    },
  };
}

function tokenOf({ pair: { accessToken }, generation }: StoredTokens): StoredToken {
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
    const file = openSync(beside, 'wx', existing ? existing.mode & 0o777 : 0o666);
    try {
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
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
