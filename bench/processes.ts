import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import type { SandboxOptions } from '../src/sandbox/sandbox.ts';
import type { SandboxAddress, SandboxCommand, SandboxState } from './sandbox-process.ts';

export interface BenchSandbox extends AsyncDisposable, SandboxAddress {
  readonly endpoint: string;
  /** A good access token, for asking it without a gateway. */
  readonly token: string;
  /** The token store of all gateways in front of it: its link opens only for the first one. */
  readonly tokenStore: string;
  tell(command: SandboxCommand): Promise<SandboxState>;
}

export interface BenchGateway extends AsyncDisposable {
  readonly endpoint: string;
  readonly pid: number;
  /** Bytes in use, once the garbage is collected; only of a gateway that reports them. */
  inUse(): Promise<number>;
}

const running = new Set<ChildProcess>();
const folders = new Set<string>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => process.exit(1));
}

/** The sandbox in a process of its own, which can be told to change its persons. */
export async function startBenchSandbox(options: SandboxOptions): Promise<BenchSandbox> {
  const child = start('sandbox-process.ts', { args: [JSON.stringify(options)] });
  const [address] = (await once(child, 'message')) as [SandboxAddress];
  const set = (await (await fetch(address.tokenLink)).json()) as { access_token: string };
  const folder = mkdtempSync(join(tmpdir(), 'recruiting-bench-'));
  folders.add(folder);
  return {
    ...address,
    endpoint: `${address.url}/graphql`,
    token: set.access_token,
    tokenStore: `sqlite:${join(folder, 'tokens.db')}`,
    tell: async (command) => {
      const answer = once(child, 'message');
      child.send(command);
      const [state] = (await answer) as [SandboxState];
      return state;
    },
    [Symbol.asyncDispose]: () => end(child),
  };
}

/** The gateway as it runs in production, in front of this sandbox. */
export async function startGateway(
  sandbox: BenchSandbox,
  {
    env = {},
    reportsMemory = false,
  }: { env?: Record<string, string>; reportsMemory?: boolean } = {},
): Promise<BenchGateway> {
  const child = start('../src/main.ts', {
    execArgv: reportsMemory ? ['--import', pathOf('memory-reports.ts')] : [],
    env: {
      NODE_ENV: 'production',
      PORT: '0',
      ADMIN_PORT: '0',
      RECRUITING_URL: sandbox.url,
      TOKEN_LINK: sandbox.tokenLink,
      TOKEN_STORE: sandbox.tokenStore,
      ALLOW_ANONYMOUS: 'true',
      // A benchmark is one caller who never stops.
      PAGES_PER_MINUTE: '0',
      ...env,
    },
  });
  return {
    endpoint: await endpointIn(child),
    pid: child.pid!,
    inUse: async () => {
      const answer = once(child, 'message');
      child.send('look');
      const [bytes] = (await answer) as [number];
      return bytes;
    },
    [Symbol.asyncDispose]: () => end(child),
  };
}

/** Drains all the time, each with a selection of its own: see `drain-process.ts`. */
export async function startDrains(endpoint: string, count: number): Promise<AsyncDisposable> {
  const child = start('drain-process.ts', { args: [endpoint, String(count)] });
  await once(child, 'message');
  return { [Symbol.asyncDispose]: () => end(child) };
}

interface StartOptions {
  readonly args?: readonly string[];
  readonly execArgv?: string[];
  readonly env?: Record<string, string>;
}

function start(file: string, { args = [], execArgv = [], env = {} }: StartOptions): ChildProcess {
  const child = fork(pathOf(file), args, {
    execArgv,
    env,
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

async function endpointIn(child: ChildProcess): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let printed = '';
  // Read to the end: a log that nobody reads holds up who writes it.
  child.stdout!.setEncoding('utf8').on('data', (text: string) => {
    if (printed.length < 100_000) printed += text;
    const found = /http:\/\/[^\s"]+\/graphql(?=[\s"])/.exec(printed);
    if (found) resolve(found[0]);
  });
  child.once('exit', () => reject(new Error(`The gateway ended:\n${printed}`)));
  return await promise;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

function pathOf(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}
