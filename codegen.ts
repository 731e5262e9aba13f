import { readFileSync } from 'node:fs';
import type { CodegenConfig } from '@graphql-codegen/cli';
import { readAdaptersFile } from './src/setup/operator-files.ts';
import { servedOffline, servedSdl } from './src/cli/schema-served.ts';
import { readConfig } from './src/config.ts';

/**
 * Writes the golden files of what callers and a supergraph get from the schema snapshot: a change of the snapshot becomes
 * a difference that can be read. `npm run codegen` writes them, `npm run codegen -- --check` compares.
 */
const readFile = (path: string) => readFileSync(path, 'utf8');
const settings = readConfig({}, readFile);
const { schemaPath } = settings;
const overrides = readAdaptersFile(schemaPath, { readFile });
const snapshot = readFile(schemaPath);
const served = servedOffline(snapshot, settings, overrides);
const withNode = servedOffline(snapshot, { ...settings, nodeInterface: true }, overrides);

/** The documents of an example, with the types of their variables and results. */
function typesOf(example: string, config: object = {}): CodegenConfig['generates'] {
  const folder = `examples/${example}`;
  return {
    [`${folder}/generated/`]: {
      schema: servedSdl(served),
      documents: [`${folder}/*.ts`],
      preset: 'client',
      presetConfig: { fragmentMasking: false },
      config: { useTypeImports: true, importExtension: '.ts', ...config },
    },
  };
}

/** A plugin of our own. */
const SUBGRAPH = 'subgraph-sdl';

const config: CodegenConfig = {
  pluginLoader: async (name) =>
    name.endsWith(SUBGRAPH) ? { plugin: () => served.subgraphSdl() } : await import(name),
  generates: {
    'schema/served.graphql': {
      schema: servedSdl(served),
      plugins: ['schema-ast'],
      config: { includeDirectives: true },
    },
    'schema/served-with-node.graphql': {
      schema: servedSdl(withNode),
      plugins: ['schema-ast'],
      config: { includeDirectives: true },
    },
    'schema/subgraph.graphql': { schema: servedSdl(served), plugins: [SUBGRAPH] },
    ...typesOf('typed-documents', { documentMode: 'string' }),
    ...typesOf('apollo'),
    ...typesOf('urql'),
    ...typesOf('tanstack-query'),
  },
};

export default config;
