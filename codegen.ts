import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import process from 'node:process';
import { preset } from '@graphql-codegen/client-preset';
import { codegen } from '@graphql-codegen/core';
import { printSchemaWithDirectives } from '@graphql-tools/utils';
import { buildASTSchema, parse, type GraphQLSchema } from 'graphql';
import type { Command } from 'commander';
import { format } from 'prettier';
import * as v from 'valibot';
import { withAdditions } from './src/additions/with-additions.ts';
import { readAdaptersFile } from './src/setup/operator-files.ts';
import { commands } from './src/cli/program.ts';
import { servedSdl } from './src/cli/schema.ts';
import { readConfig, variables } from './src/config.ts';
import { CODES, type Code } from './src/errors.ts';
import { serveSnapshot } from './src/schema/served/served-schema.ts';
import relay from './examples/relay/gateway.config.ts';

/**
 * Writes the golden files of what callers and a supergraph get from the schema snapshot, so that a change of the snapshot
 * becomes a difference that can be read, and the tables of settings, commands and error codes. `npm run codegen` writes them,
 * `npm run codegen -- --check` compares.
 */
const readFile = (path: string) => readFileSync(path, 'utf8');
const settings = readConfig({}, 'server');
const { schemaPath } = settings;
const overrides = readAdaptersFile(schemaPath);
const snapshot = readFile(schemaPath);
const served = withAdditions(serveSnapshot(snapshot, settings, overrides));
const rich = withAdditions(serveSnapshot(readFile('schema/rich.graphql'), settings), relay);

const [schema, richSchema] = [served, rich].map((each) =>
  buildASTSchema(parse(servedSdl(each)), { assumeValidSDL: true }),
) as [GraphQLSchema, GraphQLSchema];
await write('schema/served.graphql', printSchemaWithDirectives(schema));
await write('examples/relay/schema.graphql', printSchemaWithDirectives(richSchema));
await write('schema/subgraph.graphql', served.subgraphSdl());
await writeTypes('apollo');
await writeTypes('urql');

await writeTable('docs/reference.md', 'settings', settingsTable());
await writeTable('docs/reference.md', 'commands', commandsTable());
await writeTable('docs/reference.md', 'codes for callers', codesTable(false));
await writeTable('docs/reference.md', 'codes for operators', codesTable(true));

/** Each setting, with its default and meaning. */
function settingsTable(): string[][] {
  const rows = Object.entries(variables.entries).map(([name, variable]) => {
    const { description, fallback } = v.getMetadata(variable);
    const value = v.getDefault(variable) ?? '';
    const plain = value === '' ? 'none' : `\`${value}\``;
    return [`\`${name}\``, fallback ?? plain, description];
  });
  return [['variable', 'default', 'meaning'], ...rows];
}

/** Each command, as it is typed behind `npm start --`, with its options. */
function commandsTable(): string[][] {
  const rowsOf = (command: Command, before = ''): string[][] => {
    const name = `${before}${command.name()}`;
    if (command.commands.length > 0) {
      return command.commands.flatMap((each) => rowsOf(each, `${name} `));
    }
    const usage = [name, ...command.registeredArguments.map((each) => `<${each.name()}>`)].join(
      ' ',
    );
    const options = command.options.map(({ flags }) => `\`${flags}\``).join(', ');
    return [[`\`${usage}\``, command.description(), options]];
  };
  const { commands: all } = commands(async () => {});
  return [['command', 'what it does', 'options'], ...all.flatMap((each) => rowsOf(each))];
}

/** The error codes about which callers, or only operators, can do something. */
function codesTable(forOperators: boolean): string[][] {
  const rows = Object.entries<Code>(CODES)
    .filter(([, { isForOperator = false }]) => isForOperator === forOperators)
    .map(([code, { when, advice }]) => [`\`${code}\``, when, advice]);
  return [['code', 'when', 'what to do'], ...rows];
}

/** Replaces the table between the comments `<!-- name -->` and `<!-- end -->`. */
async function writeTable(path: string, name: string, rows: string[][]): Promise<void> {
  const lines = rows.map((cells) => `| ${cells.join(' | ').replaceAll('||', '\\|')} |`);
  lines.splice(1, 0, `|${' --- |'.repeat(rows[0]!.length)}`);
  const table = `<!-- ${name} -->\n\n${lines.join('\n')}\n\n<!-- end -->`;
  const parts = new RegExp(`<!-- ${name} -->.*?<!-- end -->`, 's');
  const text = readFile(path).replace(parts, () => table);
  await write(path, await format(text, { parser: 'markdown', printWidth: 120 }));
}

/** The documents of an example, with the types of their variables and results. */
async function writeTypes(example: string): Promise<void> {
  const folder = `examples/${example}`;
  const documents = globSync(`${folder}/*.ts`).flatMap((location) =>
    Array.from(readFile(location).matchAll(/\bgraphql\(`([^`]*)`\)/g), ([, rawSDL = '']) => ({
      location,
      rawSDL,
      document: parse(rawSDL),
    })),
  );
  const files = await preset.buildGeneratesSection({
    baseOutputDir: `${folder}/generated/`,
    presetConfig: { fragmentMasking: false },
    schema: parse(servedSdl(served)),
    schemaAst: schema,
    documents,
    config: { useTypeImports: true, importExtension: '.ts' },
    plugins: [],
    pluginMap: {},
  });
  for (const file of files) await write(file.filename, await codegen(file));
}

async function write(path: string, content: string): Promise<void> {
  if (process.argv.includes('--check')) {
    if (existsSync(path) && readFile(path) === content) return;
    console.error(`${path} is not up to date. Run npm run codegen, and commit the files.`);
    process.exitCode = 1;
    return;
  }
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}
