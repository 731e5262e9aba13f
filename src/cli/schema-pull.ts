import { existsSync } from 'node:fs';
import type { GraphQLSchema } from 'graphql';
import type { Config } from '../config.ts';
import { compareSchemas } from '../schema/live/compare-schemas.ts';
import { readSnapshot } from '../schema/snapshot.ts';
import { closedIntrospection, introspect } from '../schema/live/introspect.ts';
import { readAdaptersFile, readSnapshotFile } from '../setup/operator-files.ts';
import { askService } from './live-schema.ts';
import { replaceFile } from './replace-file.ts';
import { loadedFor } from './gateway-config-file.ts';
import { isEqual, listed } from './schema-check.ts';
import { servedOffline } from './schema-print.ts';
import { CommandError, type Terminal } from './terminal.ts';

interface PullOptions {
  /** Undefined: the snapshot itself. */
  readonly output?: string | undefined;
  /** Overwrites any file, and writes a schema that could not be served. */
  readonly force: boolean;
}

/** Writes the live schema into the snapshot, and prints the differences. */
export async function schemaPull(
  { output, force }: PullOptions,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  const path = output ?? config.schemaPath;
  const before = readExisting(path, force, terminal);
  const live = await askService(terminal, config.upstreamTimeoutMs, async (execute, service) => ({
    ...(await introspect(execute, terminal.stop)),
    service,
  }));
  if ('refused' in live) {
    throw new CommandError(
      `${closedIntrospection(live)} Ask its support to allow introspection, or maintain the snapshot by hand: ` +
        '`schema check` compares it without introspection.',
    );
  }
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

/** Refuses to overwrite a file that is not a schema: the setting may name it by mistake. */
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
