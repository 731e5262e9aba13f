import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { askAt, type GraphqlAnswer, type Question } from './ask-at.ts';

/** A Hive Gateway as a process of its own, which can serve several supergraphs: starting it is the dear part. */
export interface Router extends AsyncDisposable {
  serve(supergraph: string, credentials?: RouterConfig['credentials']): Promise<RouterEndpoint>;
}

export interface RouterConfig {
  readonly supergraph: string;
  /** What it sends as `x-api-key`, by the name of the subgraph. */
  readonly credentials: Readonly<Record<string, string>>;
}

export interface RouterEndpoint {
  readonly url: string;
  ask(...question: Question): Promise<GraphqlAnswer>;
}

/** Nothing of the environment of the tests reaches it: no proxy, no registry, no reporting. */
export function startRouter(): Router {
  const child = spawn(process.execPath, [resolve('test/support/router-program.ts')], {
    env: { NODE_COMPILE_CACHE: resolve('node_modules/.cache/node-compile') },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const ended = once(child, 'close');
  let complaints = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints += text;
  });
  // It may end before it has read; why is in its output.
  child.stdin.on('error', () => {});
  const addresses = createInterface({ input: child.stdout })[Symbol.asyncIterator]();

  return {
    serve: async (supergraph, credentials = {}) => {
      const config: RouterConfig = { supergraph, credentials };
      child.stdin.write(`${JSON.stringify(config)}\n`);
      const { value: url, done } = await addresses.next();
      if (done) {
        await ended;
        throw new Error(`The router ended instead of serving:\n${complaints}`);
      }
      return { url, ask: (...question) => askAt(url, ...question) };
    },
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
