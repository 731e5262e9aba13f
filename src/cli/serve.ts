import type { Logger } from 'pino';
import { systemClock } from '../clock.ts';
import { readConfig, type Config } from '../config.ts';
import { createGateway } from '../gateway.ts';
import { listen } from '../http/listen.ts';
import { createLog } from '../log.ts';
import { startSandbox, type Sandbox } from '../sandbox/sandbox.ts';
import { openSqliteStore } from '../tokens/sqlite-store.ts';
import type { TokenStore } from '../tokens/token-store.ts';
import { readSnapshotFile } from './snapshot-file.ts';
import { CommandError, stopped, type Terminal } from './terminal.ts';

/** Serves the gateway until the process is asked to stop. */
export async function serve(terminal: Terminal): Promise<void> {
  const config = readConfig(terminal.env, terminal.readFile);
  const log = createLog({
    level: config.logLevel,
    json: config.production,
    colors: terminal.stdout.isTTY === true,
    destination: terminal.stdout,
  });
  for (const name of config.ignored) log.warn(`${name} means nothing to this version yet.`);
  const snapshot = readSnapshotFile(config.schemaPath, terminal);
  await using parts = new AsyncDisposableStack();
  const own = <T extends { close(): Promise<void> }>(part: T): T =>
    parts.adopt(part, (it) => it.close());

  const upstream = config.recruitingUrl === undefined ? await sandboxInside(own) : real(config);
  const store = own(openStore(upstream.storePath));
  const gateway = own(
    await createGateway({
      config: { ...config, ...upstream.settings },
      snapshot,
      store,
      clock: systemClock,
      log,
    }),
  );
  const server = own(
    await listen(gateway.yoga, {
      ...config,
      onCut: (requests) =>
        log.warn({ requests }, 'requests were cut off, since they did not end in time'),
    }),
  );
  announce(server.url, upstream.settings.recruitingUrl, config, log, terminal);
  await stopped(terminal.stop);
  log.info('stopping: what is in flight has 10 s to finish');
}

interface Upstream {
  settings: { recruitingUrl: string; tokenLink: string | undefined };
  storePath: string;
}

function real({ recruitingUrl, tokenLink, tokenStore }: Config): Upstream {
  return { settings: { recruitingUrl: recruitingUrl!, tokenLink }, storePath: tokenStore.path };
}

/** Its tokens stay in memory, so that nothing of it can mix with real ones. */
async function sandboxInside(own: (sandbox: Sandbox) => Sandbox): Promise<Upstream> {
  const { url, tokenLink } = own(await startSandbox());
  return { settings: { recruitingUrl: url, tokenLink }, storePath: ':memory:' };
}

function openStore(path: string): TokenStore {
  try {
    return openSqliteStore(path);
  } catch (error) {
    throw new CommandError(
      `The token store cannot be opened (${path}): ${(error as Error).message}. ` +
        'It was left as it is. Check the path in TOKEN_STORE, and that this user may write there; ' +
        'when it is damaged, move it away and import a new token with TOKEN_LINK.',
    );
  }
}

function announce(
  url: string,
  upstream: string,
  config: Config,
  log: Logger,
  { stdout }: Terminal,
): void {
  const isSandbox = config.recruitingUrl === undefined;
  if (config.production) {
    log.info({ url: `${url}/graphql`, upstream }, 'serving');
    return;
  }
  stdout.write(`
${isSandbox ? SANDBOX_NOTICE : `  Upstream   ${upstream}\n`}
  ${config.graphiql ? 'GraphiQL ' : 'GraphQL  '}  ${url}/graphql
  Health     ${url}/health   ${url}/ready

`);
}

const SANDBOX_NOTICE = `  ***  SANDBOX  ***  The people served here are made up.
  Set RECRUITING_URL to serve the real recruiting service.
`;
