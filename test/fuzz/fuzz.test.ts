import { exec } from 'node:child_process';
import process from 'node:process';
import { test } from 'vitest';

test.concurrent(
  'a property that fails under a new seed ends the run with exit code 1, and the printed command replays it',
  async ({ expect }) => {
    const { code, printed } = await run(fuzz('fails'));
    expect(code).toBe(1);
    const [, command] = /^ {2}(RANDOM_SEED=\d+ npm test .*)$/m.exec(printed)!;
    expect(printed).toContain('    a number cannot be divided by three\n');
    expect(printed).not.toContain('    a number is itself\n');

    const replayed = await run(command!);
    expect(replayed.code).toBe(1);
    expect(counterexample(replayed.printed)).toBe(counterexample(printed));
  },
);

test.concurrent(
  'properties that hold under every seed end the run with exit code 0 when its time is over',
  async ({ expect }) => {
    const { code, printed } = await run(fuzz('holds'));
    expect(printed).toMatch(/No failure in [1-9]\d* rounds/);
    expect(code).toBe(0);
  },
);

test.concurrent(
  'an option that vitest does not know ends the run with the message of vitest',
  async ({ expect }) => {
    const { code, printed } = await run(`${fuzz('holds')} --unknown`);
    expect(code).toBe(1);
    expect(printed).toContain('Unknown option `--unknown`');
    expect(printed).not.toContain('ENOENT');
  },
);

function fuzz(planted: 'fails' | 'holds'): string {
  const config = '--config=test/fuzz/planted/vitest.config.ts';
  return `npm run -s fuzz -- --minutes 0.01 ${config} test/fuzz/planted/${planted}.ts`;
}

function counterexample(printed: string): string {
  return /Counterexample: .*/.exec(printed)![0];
}

/** Runs as in a terminal: the variables that vitest sets for its workers are not inherited. */
function run(command: string): Promise<{ code: number; printed: string }> {
  const { PATH, HOME } = process.env;
  return new Promise((resolve) => {
    exec(command, { env: { PATH, HOME, NO_COLOR: '1' } }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, printed: stdout + stderr }),
    );
  });
}
