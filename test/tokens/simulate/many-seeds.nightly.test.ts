import { expect, test } from 'vitest';
import { startProcess } from '../../support/processes/process.ts';
import { FLAWS } from './flaws.ts';
import { find, simulate, stepsThatShow } from './simulator.ts';

// From other seeds every night. The output of a failure says how to replay it.
test('20,000 histories of replicas break no promise, and meet every row of faults', async () => {
  const { code, stdout } = await startProcess([
    '--max-semi-space-size=64',
    'test/tokens/simulate/run.ts',
    '--seeds=20000',
  ]).ended;
  expect(stdout).toMatch(/^20000 histories from seed \d+, no promise broken$/m);
  expect(stdout).not.toContain('Met less than');
  expect(code).toBe(0);
}, 1_200_000);

test.each(Object.keys(FLAWS))(
  'the flaw %s is found, and its history is shortened',
  { timeout: 240_000 },
  async (flaw) => {
    expect(await stepsThatShow(flaw)).toBeLessThanOrEqual(4);
  },
);

test('the command that is printed with a failure replays it', async () => {
  const { output } = await find('ignore-claims');
  const { command } = /npm run simulate -- (?<command>.*)$/m.exec(output)!.groups!;
  const replayed = await simulate(...command!.split(' '));
  expect(replayed.code).toBe(1);
  expect(replayed.output.slice(replayed.output.indexOf('The shortest'))).toBe(
    output.slice(output.indexOf('The shortest')),
  );
});
