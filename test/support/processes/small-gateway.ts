import { startService, type Service } from '../../service/service.ts';
import { bundled } from './bundled.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { served, startProcess, type Program } from './process.ts';

/** A gateway that was just started has 30 MB of its 64 MB in use. The new space is that of `npm start`. */
const HEAP = '--max-old-space-size=64 --max-semi-space-size=8';

/** A gateway with so little memory that requests and answers which took many times their size would end it. */
export interface SmallGateway extends AsyncDisposable {
  readonly upstream: Service;
  /** Of its GraphQL endpoint. */
  readonly url: string;
  readonly program: Program;
  /** Sends an operation, or a text, and returns the text of the answer. */
  ask(body: object | string): Promise<string>;
}

/** @param env settings beside those of the service */
export async function startSmallGateway(env: Record<string, string> = {}): Promise<SmallGateway> {
  await using ends = new AsyncDisposableStack();
  const folder = ends.use(temporaryFolder());
  const upstream = ends.use(await startService());
  const settings = {
    NODE_OPTIONS: HEAP,
    RECRUITING_URL: upstream.url,
    TOKEN_LINK: upstream.tokenLink,
    TOKEN_STORE: `sqlite:${folder.file('tokens.db')}`,
    ALLOW_ANONYMOUS: 'true',
    // A process that collects garbage again and again is slow on a busy machine.
    UPSTREAM_TIMEOUT_MS: '120000',
    ...env,
  };
  const program = ends.use(startProcess([await bundled('src/process.ts')], { env: settings }));
  const { url } = await served(program);
  const ask = async (body: object | string) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    return await response.text();
  };
  const open = ends.move();
  return { upstream, url, program, ask, [Symbol.asyncDispose]: () => open.disposeAsync() };
}
