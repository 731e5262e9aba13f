import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import type { Terminal } from './terminal.ts';

/** Says where what is served: a line of the log in production, something to click on otherwise. */
export function announce(
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
