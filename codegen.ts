import { readFileSync } from 'node:fs';
import type { CodegenConfig } from '@graphql-codegen/cli';
import { readAdaptersFile } from './src/cli/operator-files.ts';
import { servedOffline, servedSdl } from './src/cli/schema-print.ts';
import { readConfig } from './src/config.ts';

/**
 * What is written out of the schema snapshot: the golden files of what callers and a supergraph get, and the types that our
 * own resolvers are checked against. `npm run codegen` writes, `npm run codegen -- --check` compares.
 */
const readFile = (path: string) => readFileSync(path, 'utf8');
const settings = readConfig({}, readFile);
const { schemaPath } = settings;
const overrides = readAdaptersFile(schemaPath, { readFile });
const served = servedOffline(readFile(schemaPath), settings, overrides);

/** A plugin of our own. */
const SUBGRAPH = 'subgraph-sdl';

const config: CodegenConfig = {
  schema: servedSdl(served),
  pluginLoader: async (name) =>
    name.endsWith(SUBGRAPH) ? { plugin: () => served.subgraphSdl() } : await import(name),
  generates: {
    'schema/served.graphql': {
      plugins: ['schema-ast'],
      config: { includeDirectives: true },
    },
    'schema/subgraph.graphql': { plugins: [SUBGRAPH] },
    'src/schema/generated/served.ts': {
      plugins: ['typescript'],
      config: {
        enumsAsTypes: true,
        skipTypename: true,
        useTypeImports: true,
        immutableTypes: true,
        scalars: { ID: { input: 'string', output: 'string | number' } },
      },
    },
  },
};

export default config;
