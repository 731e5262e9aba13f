import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { startSandbox, type SandboxOptions, type SandboxState } from '../../sandbox/sandbox.ts';
import { newApiKey } from './keys-new.ts';
import { CommandError, stopped, type Terminal } from './terminal.ts';

interface SandboxCommandOptions extends Omit<
  SandboxOptions,
  'schema' | 'tooCostly' | 'refuseEarlyRefresh'
> {
  schema?: 'persons' | 'rich' | 'results';
  tooCostly?: 'error' | '413' | '502' | '504';
  refuseEarlyRefresh?: '400' | '403';
  keys?: boolean;
  /** The path of the file that keeps the state. */
  state?: string;
  dropEvery?: number;
  dropAfterEvery?: number;
}

/** Plays the recruiting service until the process is asked to stop. */
export async function sandbox(
  { keys, state, dropEvery, dropAfterEvery, ...habits }: SandboxCommandOptions,
  { stdout, stop }: Terminal,
): Promise<void> {
  const { schema = habits.allHabits ? 'results' : 'persons', ...others } = habits;
  const { tooCostly, refuseEarlyRefresh, ...options } = others;
  const running = await startSandbox({
    ...options,
    rich: schema === 'rich',
    results: schema === 'results',
    ...(tooCostly && { tooCostly: tooCostly === 'error' ? tooCostly : STATUSES[tooCostly] }),
    ...(refuseEarlyRefresh && { refuseEarlyRefresh: STATUSES[refuseEarlyRefresh] }),
    ...(state !== undefined && { saved: readState(state), save: writerOf(state) }),
  }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error;
    throw new CommandError(
      `The sandbox cannot listen on port ${options.port}: another process does. Choose another with --port, or 0 for a free one.`,
    );
  });
  if (dropEvery) running.tokenAnswers.every(dropEvery, 'drop-before');
  if (dropAfterEvery) running.tokenAnswers.every(dropAfterEvery, 'drop-after');
  const { url, tokenLink } = running;
  const made = keys === true ? KEYS.map(([name, scopes]) => newApiKey(name, scopes)) : [];
  const settings = [
    `RECRUITING_URL=${url}`,
    `TOKEN_LINK=${tokenLink}`,
    // A store belongs to one address of the service.
    `TOKEN_STORE=sqlite:data/sandbox-${new URL(url).port}.db`,
    ...(schema === 'rich' ? ['RECRUITING_SCHEMA=schema/rich.graphql MUTATIONS=all'] : []),
    ...(schema === 'results' ? ['RECRUITING_SCHEMA=schema/results.graphql'] : []),
    made.length > 0
      ? `AUTH_API_KEYS=${made.map(({ entry }) => entry).join()}`
      : 'ALLOW_ANONYMOUS=true',
  ];
  stdout.write(`
  The sandbox plays the recruiting service. Its people are made up.

  Base URL     ${url}
  Token link   ${tokenLink}
${KEYS.map(([, scopes], index) => made[index] && `  API key      ${made[index].key}   ${scopes}\n`)
  .filter((line) => line !== undefined)
  .join('')}
  Serve it:    ${settings.join(' \\\n               ')} npm start

  As an administrator:
    curl -X POST ${url}/account/tokens   makes a new token, and prints its link; ends the tokens in use
    curl -X POST ${url}/account/revoke   revokes all tokens
${
  schema === 'results'
    ? `    curl -X POST ${url}/account/hide-managers   makes managers an error; show-managers ends that\n`
    : ''
}
`);
  await stopped(stop);
  await running.close();
}

const STATUSES = { 400: 400, 403: 403, 413: 413, 502: 502, 504: 504 } as const;

/** The default scopes of `keys new`, and all that a caller can have. */
const KEYS = [
  ['portal', 'read'],
  ['admin', 'read+drain+write+router'],
] as const;

function readState(path: string): SandboxState | undefined {
  if (!existsSync(path)) return undefined;
  try {
    const state = JSON.parse(readFileSync(path, 'utf8')) as SandboxState;
    if (typeof state.tokens?.linkPath === 'string') return state;
  } catch {
    // Reported below.
  }
  throw new CommandError(
    `${path} is not the state of a sandbox. Name another file with --state, or remove this one.`,
  );
}

function writerOf(path: string): (state: SandboxState) => void {
  return (state) => {
    const unfinished = `${path}.part`;
    try {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(unfinished, JSON.stringify(state), { mode: 0o600 });
      renameSync(unfinished, path);
    } catch (error) {
      throw new CommandError(
        `The state of the sandbox cannot be written to ${path}: ${(error as Error).message}. Name another file with --state.`,
      );
    }
  };
}
