import { startSandbox, type SandboxOptions } from '../sandbox/sandbox.ts';
import { CommandError, stopped, type Terminal } from './terminal.ts';

export interface SandboxCommandOptions extends SandboxOptions {
  dropEvery?: number;
  dropAfterEvery?: number;
}

/** Plays the recruiting service until the process is asked to stop. */
export async function sandbox(
  options: SandboxCommandOptions,
  { stdout, stop }: Terminal,
): Promise<void> {
  const running = await startSandbox(options).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error;
    throw new CommandError(
      `The sandbox cannot listen on port ${options.port}: another process does. Choose another with --port, or 0 for a free one.`,
    );
  });
  const { dropEvery, dropAfterEvery } = options;
  if (dropEvery) running.tokenAnswers.every(dropEvery, 'drop-before');
  if (dropAfterEvery) running.tokenAnswers.every(dropAfterEvery, 'drop-after');
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
