import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

export interface StartOptions {
  readonly args?: readonly string[];
  readonly execArgv?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
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

/** Starts a file, given relative to this folder. It does not inherit the environment. */
export function start(
  file: string,
  { args = [], execArgv = [], env = {} }: StartOptions = {},
): ChildProcess {
  const child = fork(pathOf(file), args, {
    execArgv: [...execArgv],
    env: { ...env },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

export async function end(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

export function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** Sends a command, and returns the reply. */
export async function tell(child: ChildProcess, command: object | string): Promise<unknown> {
  const answer = messageOf(child);
  child.send(command);
  return await answer;
}

/** The next message of the process. Throws if the process ends instead. */
export async function messageOf(child: ChildProcess): Promise<unknown> {
  const settled = new AbortController();
  const { signal } = settled;
  const ended = once(child, 'exit', { signal }).then(() => {
    throw new Error('A process of the benchmark ended instead of answering.');
  });
  try {
    const [message] = (await Promise.race([once(child, 'message', { signal }), ended])) as [
      unknown,
    ];
    return message;
  } finally {
    ended.catch(() => {});
    settled.abort();
  }
}

/** The address that a server prints when it listens. */
export async function endpointIn(child: ChildProcess): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const printed = printedBy(child);
  child.stdout!.on('data', () => {
    const match = /http:\/\/[^\s"]+\/graphql(?=[\s"])/.exec(printed());
    if (match) resolve(match[0]);
  });
  child.once('exit', () => reject(new Error(`The server ended:\n${printed()}`)));
  return await promise;
}

/** Reads the output to the end, because unread output blocks a process. Keeps the beginning. */
export function printedBy(child: ChildProcess): () => string {
  let printed = '';
  child.stdout!.on('data', (bytes: Buffer) => {
    if (printed.length < 10_000) printed += bytes.toString();
  });
  return () => printed;
}

/** A temporary folder, removed when the benchmark ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'recruiting-bench-'));
  folders.add(folder);
  return folder;
}

export function pathOf(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}
