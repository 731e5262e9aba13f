import type { Command } from 'commander';
import { readConfig } from '../config.ts';
import { readAdaptersFile } from './adapters-file.ts';
import { explained, explainedAsJson } from './schema-explain.ts';
import { readSnapshotFile } from './snapshot-file.ts';
import type { Terminal } from './terminal.ts';

export function addSchemaCommands(root: Command, terminal: Terminal): void {
  const { stdout } = terminal;
  const schema = root.command('schema').description('the schema that is served');
  schema
    .command('print')
    .description('print what callers see, as SDL')
    .option('--subgraph', 'what a supergraph is composed of', false)
    .action(async ({ subgraph }: { subgraph: boolean }) => {
      const { servedOffline, servedSdl } = await import('./schema-print.ts');
      const { snapshot, config, overrides } = settings(terminal);
      const served = servedOffline(snapshot, config, overrides);
      stdout.write(subgraph ? served.subgraphSdl() : servedSdl(served));
    });
  schema
    .command('explain')
    .description('say for every list why it got adapters, or why not')
    .option('--json', 'for programs', false)
    .action(async ({ json }: { json: boolean }) => {
      const { servedOffline } = await import('./schema-print.ts');
      const { snapshot, config, overrides } = settings(terminal);
      const { reports } = servedOffline(snapshot, config, overrides);
      stdout.write(json ? explainedAsJson(reports) : explained(reports));
    });
}

/** Only what the schema depends on: looking at it needs no service. */
function settings(terminal: Terminal) {
  const { RECRUITING_SCHEMA, SCHEMA_PREFIX, CONNECTION_MAX, DRAIN_MAX_ITEMS } = terminal.env;
  const given = { RECRUITING_SCHEMA, SCHEMA_PREFIX, CONNECTION_MAX, DRAIN_MAX_ITEMS };
  const config = readConfig(given, terminal.readFile);
  const snapshot = readSnapshotFile(config.schemaPath, terminal);
  return { config, snapshot, overrides: readAdaptersFile(config.schemaPath, terminal) };
}
