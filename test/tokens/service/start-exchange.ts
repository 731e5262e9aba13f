import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { onTestFinished } from 'vitest';

/** One exchange of the token `refresh-1` in a process of its own, until the test is finished. */
export function startExchange(
  options: { baseUrl: string; proxy?: string; patienceMs?: number },
  env: Record<string, string> = {},
) {
  const child = fork(join(import.meta.dirname, 'exchange-process.ts'), [JSON.stringify(options)], {
    env,
    execArgv: [],
  });
  const ended = new Promise((resolve) => void child.once('close', resolve));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const outcome = new Promise<{ kind: string; why?: string }>((resolve, reject) => {
    child.once('message', (message) => resolve(message as { kind: string }));
    child.once('exit', () => reject(new Error('The process ended without an outcome.')));
  });
  return {
    outcome,
    /** Resolves when the kernel has stopped it. */
    stop: async () => {
      child.kill('SIGSTOP');
      while (!/\) T /.test(readFileSync(`/proc/${child.pid}/stat`, 'utf8'))) await delay(5);
    },
    goOn: () => void child.kill('SIGCONT'),
  };
}
