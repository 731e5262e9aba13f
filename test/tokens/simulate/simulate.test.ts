import { expect, test } from 'vitest';
import { blockWith } from '../../support/docs/documents.ts';
import { runPlan } from './history.ts';
import { simulate } from './simulator.ts';

test.concurrent(
  '250 histories of replicas break no promise, and meet every row of faults',
  { timeout: 240_000 },
  async () => {
    const { code, output } = await simulate('--seeds', '250', '--seed', '101');
    expect(output).toContain('250 histories from seed 101, no promise broken');
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
    revokesOnReuse: false,
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
  const [, documented] = blockWith('CONTRIBUTING.md', 'npm run simulate').trim().split(' -- ');
  const args = documented!.split(' ');
  const [first, second] = await Promise.all([simulate(...args), simulate(...args)]);
  expect(first.output).toContain('all faults end');
  expect(second.output).toBe(first.output);
});
