import { Option, type Command } from 'commander';
import { FEDERATION_VERSIONS, readConfig, type Config } from '../config.ts';
import { readAdaptersFile, readSnapshotFile } from '../setup/operator-files.ts';
import { loadedFor } from './gateway-config-file.ts';
import { explained } from './schema-explain.ts';
import type { Terminal } from './terminal.ts';

interface PrintOptions {
  readonly subgraph: boolean;
  readonly federation?: Config['federationVersion'];
}

export function addSchemaCommands(
  root: Command,
  terminal: Terminal,
  end: (exitCode: number) => void,
): void {
  const { stdout } = terminal;
  const schema = root.command('schema').description('the schema that is served');
  schema
    .command('print')
    .description('print what callers see, as SDL')
    .option('--subgraph', 'print the SDL from which a supergraph is composed', false)
    .addOption(
      new Option(
        '--federation <version>',
        'version that --subgraph prints; FEDERATION_VERSION, or 2.3',
      ).choices(FEDERATION_VERSIONS),
    )
    .action(async ({ subgraph, federation }: PrintOptions) => {
      const { servedOffline, servedSdl } = await import('./schema-print.ts');
      const { snapshot, config, overrides } = settings(terminal);
      const federationVersion = federation ?? config.federationVersion;
      const added = await loadedFor(config, terminal);
      const served = servedOffline(snapshot, { ...config, federationVersion }, overrides, added);
      stdout.write(subgraph ? served.subgraphSdl() : servedSdl(served));
    });
  schema
    .command('explain')
    .description('explain what is derived from each list and each type with an id, and why')
    .option('--all', 'list everything from which nothing is derived', false)
    .option('--json', 'print JSON', false)
    .action(async ({ all, json }: { all: boolean; json: boolean }) => {
      const { servedOffline } = await import('./schema-print.ts');
      const { snapshot, config, overrides } = settings(terminal);
      const { reports } = servedOffline(snapshot, config, overrides);
      stdout.write(json ? `${JSON.stringify(reports, null, 2)}\n` : explained(reports, { all }));
    });
  schema
    .command('check')
    .description(
      'compare the live schema with the snapshot; exit code 0 equal or additive, 1 breaking or dangerous, 2 not compared',
    )
    .option('--json', 'print JSON', false)
    .option(
      '--documents <path>',
      'also check operations: a folder with .graphql or .gql files, or a manifest of trusted documents',
    )
    .action(async (options: { json: boolean; documents?: string }) => {
      const { schemaCheck } = await import('./schema-check.ts');
      end(await schemaCheck(options, readSchemaConfig(terminal), terminal));
    });
  schema
    .command('pull')
    .description('write the live schema into the snapshot, and print the differences')
    .option('--output <file>', 'write to this file instead')
    .option('--force', 'overwrite any file, and write a schema that could not be served', false)
    .action(async (options: { output?: string; force: boolean }) => {
      const { schemaPull } = await import('./schema-pull.ts');
      await schemaPull(options, readSchemaConfig(terminal), terminal);
    });
}

function settings(terminal: Terminal) {
  const config = readSchemaConfig(terminal);
  const snapshot = readSnapshotFile(config.schemaPath, terminal);
  return { config, snapshot, overrides: readAdaptersFile(config.schemaPath, terminal) };
}

/** Reads only the settings that the schema depends on: these commands need no settings for callers. */
function readSchemaConfig({ env, readFile }: Terminal): Config {
  const names = [
    'NODE_ENV',
    'GATEWAY_CONFIG',
    'RECRUITING_SCHEMA',
    'SCHEMA_PREFIX',
    'NODE_INTERFACE',
    'FEDERATION_VERSION',
    'CONNECTION_MAX',
    'DRAIN_MAX_ITEMS',
    'UPSTREAM_TIMEOUT_MS',
  ];
  const given = Object.fromEntries(names.map((name) => [name, env[name]]));
  return readConfig(given, readFile, { serves: false });
}
