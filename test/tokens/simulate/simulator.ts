import { execFile } from 'node:child_process';
import process from 'node:process';
import { promisify } from 'node:util';

/** Runs the simulator in a process of its own. */
export async function simulate(...args: string[]): Promise<{ code: number; output: string }> {
  const call = ['--max-semi-space-size=64', 'test/tokens/simulate/run.ts', ...args];
  try {
    const { stdout } = await promisify(execFile)(process.execPath, call);
    return { code: 0, output: stdout };
  } catch (error) {
    const { code, stdout } = error as { code: number; stdout: string };
    return { code, output: stdout };
  }
}

/** Looks for a flaw in the first thousand histories: the rarest is seen in one of a hundred. */
export function find(flaw: string): Promise<{ code: number; output: string }> {
  return simulate('--seeds', '1000', '--seed', '1', '--flaw', flaw);
}

/** How many steps the shortest history has that shows a flaw. Without shrinking there are ten more. */
export async function stepsThatShow(flaw: string): Promise<number | undefined> {
  const { code, output } = await find(flaw);
  return code === 1 ? (output.match(/ step: /g)?.length ?? 0) : undefined;
}
