import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { askAt, type GraphqlAnswer, type Question } from '../gateway/ask-at.ts';
import { startProcess, temporaryFolder } from '../processes/process.ts';

/** A Hive Gateway as a process of its own. */
export interface Router extends AsyncDisposable {
  readonly url: string;
  ask(...question: Question): Promise<GraphqlAnswer>;
}

const CONFIG = resolve('test/support/supergraph/router-config.ts');

export interface RouterOptions {
  /** SDL of the composed schema. */
  readonly supergraph: string;
  /** What it sends as `x-api-key`, by the name of the subgraph. */
  readonly credentials: Readonly<Record<string, string>>;
}

/** Nothing of the environment of the tests reaches it: no proxy, no registry, no reporting. */
export async function startRouter({ supergraph, credentials }: RouterOptions): Promise<Router> {
  const folder = temporaryFolder();
  const file = join(folder.path, 'supergraph.graphql');
  writeFileSync(file, supergraph);
  const command = `supergraph ${file} --host 127.0.0.1 --port 0 --disable-websockets --config-path`;
  const program = startProcess(
    [resolve('node_modules/.bin/hive-gateway'), ...command.split(' '), CONFIG],
    { env: { ROUTER_CREDENTIALS: JSON.stringify(credentials) } },
  );
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
