import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const require = createRequire(import.meta.url);

export interface RelayApp {
  /** The compiled operation or fragment. */
  artifact(name: string): object;
  remove(): void;
}

/** Compiles components with Relay's own compiler, against the schema as it is published. */
export function compileRelayApp(components: Readonly<Record<string, string>>): RelayApp {
  const app = mkdtempSync(join(tmpdir(), 'relay-app-'));
  for (const [file, component] of Object.entries(components)) {
    writeFileSync(join(app, file), component);
  }
  copyFileSync('schema/served.graphql', join(app, 'schema.graphql'));
  const config = {
    src: '.',
    schema: 'schema.graphql',
    language: 'javascript',
    eagerEsModules: false,
  };
  writeFileSync(join(app, 'relay.config.json'), JSON.stringify(config));
  execFileSync(resolve('node_modules/.bin/relay-compiler'), { cwd: app, stdio: 'pipe' });
  return {
    artifact: (name) => require(join(app, '__generated__', `${name}.graphql.js`)) as object,
    remove: () => rmSync(app, { recursive: true }),
  };
}
