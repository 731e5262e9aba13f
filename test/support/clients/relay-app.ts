import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import { build } from 'rolldown';

/** @throws Error with what the compiler reports @param args for example `--validate` */
export function compileRelay(folder: string, args: readonly string[] = []): void {
  execFileSync(resolve('node_modules/.bin/relay-compiler'), args, { cwd: folder, stdio: 'pipe' });
}

/** Bundles a React page for a browser, as an application's build does: with Relay's tags replaced by their artifacts. */
export async function bundleRelayPage(entry: string): Promise<string> {
  const { output } = await build({
    input: entry,
    platform: 'browser',
    write: false,
    logLevel: 'silent',
    transform: { define: { 'process.env.NODE_ENV': '"production"' } },
    resolve: { modules: [resolve('node_modules')], extensions: ['.ts', '.js'] },
    plugins: [{ name: 'relay', transform: withArtifacts }],
    output: { format: 'iife' },
  });
  return output[0].code;
}

const TAG = /graphql`\s*(?:query|fragment|mutation)\s+(\w+)[^`]*`/g;

function withArtifacts(code: string): string | undefined {
  const names = [...code.matchAll(TAG)].map(([, name]) => name!);
  if (names.length === 0) return undefined;
  const imports = names.map(
    (name) => `import artifact_${name} from './__generated__/${name}.graphql';\n`,
  );
  return imports.join('') + code.replaceAll(TAG, (_, name: string) => `artifact_${name}`);
}
