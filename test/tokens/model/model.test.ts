import { expect, test } from 'vitest';
import { INVARIANTS, runModel, STATES } from './quint.ts';

test('replicas that share a token set keep its promises, whatever befalls them', async () => {
  const run = { init: 'init', seed: 1, traces: 300 } as const;
  const { violated, witnessed } = await runModel({
    ...run,
    invariants: INVARIANTS,
    witnesses: STATES,
  });
  expect(violated).toEqual([]);
  expect(STATES.filter((name) => !witnessed[name])).toEqual([]);
});

/** Faults of the protocol that break an invariant. */
const FAULTS = [
  'noticedNoClaim',
  'noticedSendsLate',
  'noticedSavesWithItsClaimOnly',
  'noticedGoesBackwards',
  'noticedUsesBeforeSaving',
  'noticedLosesAtOnce',
];

test('each fault that is put into the protocol breaks an invariant', async () => {
  const run = { init: 'initWrong', seed: 1, traces: 1_200, invariants: [] } as const;
  const { witnessed } = await runModel({ ...run, witnesses: FAULTS });
  expect(FAULTS.filter((name) => !witnessed[name])).toEqual([]);
});
