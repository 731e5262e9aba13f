import { readFileSync } from 'node:fs';
import type { CodegenConfig } from '@graphql-codegen/cli';
import { readAdaptersFile } from './src/cli/adapters-file.ts';
import { servedSdl } from './src/cli/schema-print.ts';
import { readConfig } from './src/config.ts';

/**
 * What is written out of the schema snapshot: the golden file of what callers get, and the types that our
 * own resolvers are checked against. `npm run codegen` writes, `npm run codegen -- --check` compares.
 */
const readFile = (path: string) => readFileSync(path, 'utf8');
const { schemaPath, connectionMax, drainMaxItems } = readConfig({}, readFile);
const served = servedSdl(
  readFile(schemaPath),
  schemaPath,
  { connectionMax, drainMaxItems },
  readAdaptersFile(schemaPath, { readFile }),
);

const config: CodegenConfig = {
  schema: served,
  generates: {
    'schema/served.graphql': {
      plugins: ['schema-ast'],
      config: { includeDirectives: true },
    },
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
