import { execFile } from 'node:child_process';
import process from 'node:process';
import { promisify } from 'node:util';
import { expect } from 'vitest';

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

/** Looks for a flaw in the first hundred histories. */
export function find(flaw: string): Promise<{ code: number; output: string }> {
  return simulate('--seeds', '100', '--seed', '1', '--flaw', flaw);
}

export async function expectFound(flaw: string): Promise<void> {
  const { code, output } = await find(flaw);
  expect(code).toBe(1);
  // Without shrinking, a history has ten steps more.
  expect(output.match(/ step: /g)?.length ?? 0).toBeLessThanOrEqual(4);
}
