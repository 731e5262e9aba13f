import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { askAt, type GraphqlAnswer, type Question } from '../gateway/ask-at.ts';
import { temporaryFolder } from '../processes/process.ts';

/** A Hive Gateway as a process of its own. */
export interface Router extends AsyncDisposable {
  readonly url: string;
  ask(...question: Question): Promise<GraphqlAnswer>;
}

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
  const program = resolve('node_modules/.bin/hive-gateway');
  const options = ['--host', '127.0.0.1', '--port', '0', '--disable-websockets'];
  const config = ['--config-path', resolve('test/support/supergraph/router-config.ts')];
  const child = spawn(process.execPath, [program, 'supergraph', file, ...options, ...config], {
    env: {
      NODE_COMPILE_CACHE: resolve('node_modules/.cache/node-compile'),
      ROUTER_CREDENTIALS: JSON.stringify(credentials),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'close');
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const end = async () => {
    child.kill('SIGKILL');
    await ended;
    folder[Symbol.dispose]();
  };
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /^http:\S+$/.exec(line)?.[0];
    if (url === undefined) {
      output += `${line}\n`;
      continue;
    }
    child.stdout.resume();
    return { url, ask: (...question) => askAt(url, ...question), [Symbol.asyncDispose]: end };
  }
  await end();
  throw new Error(`The router ended instead of serving:\n${output}`);
}
