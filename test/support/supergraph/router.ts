import { symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { blockWith } from '../docs/documents.ts';
import { askAt, type GraphqlAnswer, type Question } from '../gateway/ask-at.ts';
import { startProcess } from '../processes/process.ts';
import { temporaryFolder } from '../temporary-folder.ts';

/** A Hive Gateway as a process of its own, with the configuration that docs/supergraph.md shows. */
export interface Router extends AsyncDisposable {
  ask(...question: Question): Promise<GraphqlAnswer>;
}

const ANNOUNCE_PORT = resolve('test/support/supergraph/announce-port.ts');
/** Packages that are installed for benchmarks and at night only. */
const PEERS = resolve('bench/node_modules');
const PROGRAM = join(PEERS, '.bin/hive-gateway');

/**
 * @param supergraph the SDL of the composed schema
 * @param env its environment: it inherits nothing of the tests, no proxy, no registry, no reporting
 */
export async function startRouter(
  supergraph: string,
  env: Record<string, string>,
): Promise<Router> {
  const folder = temporaryFolder();
  symlinkSync(PEERS, folder.file('node_modules'));
  const file = folder.file('supergraph.graphql');
  writeFileSync(file, supergraph);
  const config = folder.file('router.config.ts');
  writeFileSync(config, documentedConfig());
  const command = `supergraph ${file} --config-path ${config} --host 127.0.0.1 --port 0 --disable-websockets`;
  const program = startProcess(['--import', ANNOUNCE_PORT, PROGRAM, ...command.split(' ')], {
    env,
  });
  const end = async () => {
    await program.kill();
    folder[Symbol.dispose]();
  };
  try {
    const [url] = await program.printed(/^http:\S+$/m);
    return { ask: (...question) => askAt(url, ...question), [Symbol.asyncDispose]: end };
  } catch (error) {
    await end();
    throw error;
  }
}

/** What docs/supergraph.md shows, with what enforces scopes. */
function documentedConfig(): string {
  const scopes = blockWith('docs/supergraph.md', 'genericAuth: {');
  const config = blockWith('docs/supergraph.md', 'gatewayConfig');
  return `${scopes}\n${config.replace('defineConfig({', 'defineConfig({ ...scopes,')}`;
}
