import { startSandbox, type SandboxOptions } from '../../sandbox/sandbox.ts';
import { stopped, type Terminal } from './terminal.ts';

/** Plays the recruiting service until the process is asked to stop. */
export async function sandbox(options: SandboxOptions, { stdout, stop }: Terminal): Promise<void> {
  const running = await startSandbox(options);
  const { url, tokenLink } = running;
  const settings = [
    `RECRUITING_URL=${url}`,
    `TOKEN_LINK=${tokenLink}`,
    // A store belongs to one address of the service.
    `TOKEN_STORE=sqlite:data/sandbox-${new URL(url).port}.db`,
    'ALLOW_ANONYMOUS=true',
  ];
  stdout.write(`
  The sandbox plays the recruiting service. Its people are made up.

  Base URL     ${url}
  Token link   ${tokenLink}
  Serve it:    ${settings.join(' \\\n               ')} npm start

  As an administrator:
    curl -X POST ${url}/account/tokens   makes a new token, and prints its link; ends the tokens in use
    curl -X POST ${url}/account/revoke   revokes all tokens

`);
  await stopped(stop);
  await running.close();
}
