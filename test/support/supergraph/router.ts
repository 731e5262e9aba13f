import { symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { blockWith } from '../docs/documents.ts';
import { askAt, type GraphqlAnswer, type Question } from '../gateway/ask-at.ts';
import { startProcess } from '../processes/process.ts';
import { temporaryFolder } from '../temporary-folder.ts';

/** A Hive Gateway as a process of its own, with the configuration that docs/supergraph.md shows. */
export interface Router extends AsyncDisposable {
  readonly url: string;
  ask(...question: Question): Promise<GraphqlAnswer>;
}

export interface RouterOptions {
  /** SDL of the composed schema. */
  readonly supergraph: string;
  /** Its environment. It inherits nothing of the tests: no proxy, no registry, no reporting. */
  readonly env: Record<string, string>;
  /** Whether its configuration also enforces scopes. */
  readonly enforcesScopes?: boolean;
}

const ANNOUNCE_PORT = resolve('test/support/supergraph/announce-port.ts');
/** Packages that are installed for benchmarks and at night only. */
const PEERS = resolve('bench/node_modules');
const PROGRAM = join(PEERS, '.bin/hive-gateway');

export async function startRouter({
  supergraph,
  env,
  enforcesScopes = false,
}: RouterOptions): Promise<Router> {
  const folder = temporaryFolder();
  symlinkSync(PEERS, folder.file('node_modules'));
  const file = folder.file('supergraph.graphql');
  writeFileSync(file, supergraph);
  const config = folder.file('router.config.ts');
  writeFileSync(config, documentedConfig(enforcesScopes));
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
    return { url, ask: (...question) => askAt(url, ...question), [Symbol.asyncDispose]: end };
  } catch (error) {
    await end();
    throw error;
  }
}

function documentedConfig(enforcesScopes: boolean): string {
  const config = blockWith('docs/supergraph.md', 'gatewayConfig');
  if (!enforcesScopes) return config;
  return [
    blockWith('docs/supergraph.md', 'genericAuth: {'),
    config.replace('defineConfig({', 'defineConfig({ ...scopes,'),
  ].join('\n');
}
