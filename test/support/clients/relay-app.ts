import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { build } from 'rolldown';

const require = createRequire(import.meta.url);

export interface RelayApp {
  /** The folder of the compiler's output. */
  readonly artifacts: string;
  /** The compiled operation or fragment. */
  artifact(name: string): object;
  remove(): void;
}

export interface RelayAppOptions {
  /** Default: the schema as it is published. */
  readonly schema?: string;
  /** Whether artifacts are modules, for a bundle. Default: false. */
  readonly esModules?: boolean;
}

/** Compiles components with Relay's own compiler. */
export function compileRelayApp(
  components: Readonly<Record<string, string>>,
  {
    schema = readFileSync('schema/served.graphql', 'utf8'),
    esModules = false,
  }: RelayAppOptions = {},
): RelayApp {
  const folder = mkdtempSync(join(tmpdir(), 'relay-app-'));
  const config = {
    src: '.',
    schema: 'schema.graphql',
    language: 'javascript',
    eagerEsModules: esModules,
  };
  const files = {
    ...components,
    'schema.graphql': schema,
    'relay.config.json': JSON.stringify(config),
  };
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
  compileRelay(folder);
  return {
    artifacts: join(folder, '__generated__'),
    artifact: (name) => require(join(folder, '__generated__', `${name}.graphql.js`)) as object,
    remove: () => rmSync(folder, { recursive: true }),
  };
}

/** @throws Error with what the compiler reports @param args for example `--validate` */
export function compileRelay(folder: string, args: readonly string[] = []): void {
  execFileSync(resolve('node_modules/.bin/relay-compiler'), args, { cwd: folder, stdio: 'pipe' });
}

/**
 * Bundles a React page for a browser, as an application's build does: with Relay's tags replaced by their artifacts.
 *
 * @param artifacts the folder of the artifacts. Default: beside each component
 */
export async function bundleRelayPage(
  entry: string,
  artifacts = './__generated__',
): Promise<string> {
  const { output } = await build({
    input: entry,
    platform: 'browser',
    write: false,
    logLevel: 'silent',
    transform: { define: { 'process.env.NODE_ENV': '"production"' } },
    resolve: { modules: [resolve('node_modules')], extensions: ['.ts', '.js'] },
    plugins: [{ name: 'relay', transform: (code) => withArtifacts(code, artifacts) }],
    output: { format: 'iife' },
  });
  return output[0].code;
}

const TAG = /graphql`\s*(?:query|fragment|mutation)\s+(\w+)[^`]*`/g;

function withArtifacts(code: string, folder: string): string | undefined {
  const names = [...code.matchAll(TAG)].map(([, name]) => name!);
  if (names.length === 0) return undefined;
  const imports = names.map(
    (name) => `import artifact_${name} from '${folder}/${name}.graphql';\n`,
  );
  return imports.join('') + code.replaceAll(TAG, (_, name: string) => `artifact_${name}`);
}
