import { expect, test } from 'vitest';
import { blockWith } from '../../support/docs/documents.ts';
import { runPlan } from './history.ts';
import { stepsThatShow, find, simulate } from './simulator.ts';

test.concurrent(
  '250 histories of replicas break no promise, and meet every row of faults',
  { timeout: 240_000 },
  async () => {
    const { code, output } = await simulate('--seeds', '250', '--seed', '501');
    expect(output).toContain('250 histories from seed 501, no promise broken');
    expect(output).not.toContain('Met less than');
    expect(code).toBe(0);
  },
);

test('an exchange whose store is emptied, and gets the same tokens by another import, is reported as a loss', async () => {
  const { violations, rows } = await runPlan({
    replicas: 2,
    sharesFolder: false,
    life: 120,
    revokesOnRefresh: false,
    refusesEarly: true,
    fromLink: true,
    isPooled: true,
    ahead: 0,
    steps: [
      {
        after: 0,
        do: 'trap',
        trap: { point: 'answer', effect: 'stop', delayMs: 0, forMs: 200_000 },
        oddity: null,
      },
      { after: 0, do: 'terminate', by: 0 },
      { after: 20_000, do: 'empty' },
    ],
    seed: -285_127_460,
  });
  expect(violations).toEqual([]);
  expect(rows.get('said to be lost')).toBe(1);
});

test.concurrent('a seed gives the same history, line by line', async () => {
  const [, documented] = blockWith('docs/running.md', 'npm run simulate').trim().split(' -- ');
  const args = documented!.split(' ');
  const [first, second] = await Promise.all([simulate(...args), simulate(...args)]);
  expect(first.output).toContain('all faults end');
  expect(second.output).toBe(first.output);
});

// All of them are found at night.
test.concurrent.each(['use-before-save', 'send-again-without-answer'])(
  'the flaw %s is found, and its history is shortened',
  { timeout: 240_000 },
  async (flaw) => {
    expect(await stepsThatShow(flaw)).toBeLessThanOrEqual(4);
  },
);

test.concurrent('the command that is printed with a failure replays it', async () => {
  const { output } = await find('ignore-claims');
  const { command } = /npm run simulate -- (?<command>.*)$/m.exec(output)!.groups!;
  const replayed = await simulate(...command!.split(' '));
  expect(replayed.code).toBe(1);
  expect(replayed.output.slice(replayed.output.indexOf('The shortest'))).toBe(
    output.slice(output.indexOf('The shortest')),
  );
});
