import { startSandbox, type SandboxOptions } from '../sandbox/sandbox.ts';
import { stopped, type Terminal } from './terminal.ts';

/** Plays the recruiting service until the process is asked to stop. */
export async function sandbox(options: SandboxOptions, { stdout, stop }: Terminal): Promise<void> {
  const running = await startSandbox(options);
  stdout.write(`
  The sandbox plays the recruiting service. Its people are made up.

  Base URL     ${running.url}
  Token link   ${running.tokenLink}

  Serve it:    RECRUITING_URL=${running.url} \\
               TOKEN_LINK=${running.tokenLink} \\
               TOKEN_STORE=sqlite:data/sandbox-tokens.db ALLOW_ANONYMOUS=true npm start

`);
  await stopped(stop);
  await running.close();
}
