/** A refresh that is due, and cannot be claimed. */
import { expect, test } from 'vitest';
import { reserveFile } from '../../src/tokens/store/sealed-file.ts';
import type { Rescue } from '../../src/tokens/store/rescue.ts';
import { createSealer } from '../../src/tokens/store/seal.ts';
import { loggedFor } from '../support/gateway/operator-lines.ts';
import { DAY, MINUTE, SECOND } from '../support/random/manual-clock.ts';
import { startKept, startKeptOverSandbox, type Kept } from '../support/tokens/kept.ts';
import { codesOf, openTestRescue, PERSON, startScripted } from '../support/tokens/tokens.ts';

test.each(['claim', 'read'] as const)(
  'a store whose %s fails when a refresh is due is reported as blocked at once, in one alarm, and callers are served',
  async (method) => {
    const { clock, store, ask, gateway, logged } = await startAhead();
    expect(await troublesOf(gateway)).toEqual([]);
    store.failing.add(method);
    clock.jump(0.668 * DAY);
    await clock.pass(2 * SECOND);
    expect(await troublesOf(gateway)).toEqual(['blocked']);
    expect(codesOf(await ask(PERSON))).toEqual([]);
    await clock.pass(10 * MINUTE);
    const unread = logged.filter(({ msg }) => /token store cannot be read now/.test(String(msg)));
    expect(unread).toHaveLength(method === 'read' ? 1 : 0);
    const alarms = logged.filter(({ level }) => Number(level) >= 40);
    expect(alarms.filter((line) => !unread.includes(line))).toEqual([
      expect.objectContaining({
        level: 50,
        trouble: 'blocked',
        generation: 2,
        msg: expect.stringMatching(/refresh is due.*cannot begin.*token store cannot be/),
      }),
    ]);
    const unsent = /recruiting_token_exchanges_total\{outcome="unsent"\} ([1-9])/;
    expect(await gateway.metrics.text()).toMatch(unsent);

    store.failing.clear();
    await clock.pass(10 * MINUTE);
    expect(await troublesOf(gateway)).toEqual([]);
    expect(await store.read()).toMatchObject({ generation: 3 });
    expect(logged.map(({ msg }) => msg)).toContain('refreshes can begin again');
  },
);

test.each(['claim', 'read'] as const)(
  'a caller whose access token expired while the %s fails gets no error that blames the service',
  async (method) => {
    const { store, service, ask, sandbox, logged } = await startAhead();
    store.failing.add(method);
    service.ahead += 2 * DAY;
    const answer = await ask(PERSON);
    expect(answer.errors).toMatchObject([{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }]);
    expect(loggedFor(logged, answer)).toMatch(/the token store cannot be .*operator/);
    expect(sandbox.stats.requests.oauthToken).toBe(1);
  },
);

test('a store that cannot be read while no refresh is due is not reported as blocked', async () => {
  const { clock, store, gateway } = await startAhead();
  store.failing.add('read');
  await clock.pass(5 * MINUTE);
  expect(await troublesOf(gateway)).toEqual([]);
});

test('an unavailable service is not reported as blocked, but as a late refresh', async () => {
  const service = await startScripted();
  const { clock, gateway } = await startKept(service);
  await clock.asleep();
  await service.down();
  clock.jump(0.667 * DAY);
  await clock.pass(MINUTE);
  expect(await troublesOf(gateway)).toEqual([]);
  await clock.pass(20 * MINUTE);
  expect(await troublesOf(gateway)).toEqual(['not-rotated']);
  await service.up();
  await clock.pass(10 * MINUTE);
  expect(await troublesOf(gateway)).toEqual([]);
});

test('the claim of another process is a trouble once its exchange takes longer than possible', async () => {
  const { clock, store, gateway } = await startAhead();
  const { set, generation } = (await store.read())!;
  const claim = { set, generation, attempt: 'theirs', lifeMs: 150 * SECOND };
  await store.claim({ ...claim, replica: 'other' });
  await clock.pass(2 * MINUTE);
  expect(await troublesOf(gateway)).toEqual([]);
  await clock.pass(2 * MINUTE);
  expect(await troublesOf(gateway)).toEqual(['blocked']);
  await store.endAttempt('theirs', { outcome: 'unsent', latencyMs: 1 });
  await clock.pass(MINUTE);
  expect(await troublesOf(gateway)).toEqual([]);
});

test('an unreadable rescue file that may hold the next pair is reported as blocked until it can be read', async () => {
  const { rescue, ...ours } = openTestRescue();
  const { clock, store, gateway, logged, sandbox } = await startAhead(rescue);
  const { set, generation, pair } = (await store.read())!;
  const sealer = createSealer([Buffer.alloc(32, 1)]);
  const file = reserveFile({ ...ours, sealer, owner: { ...ours.owner, pid: 4_000_000 } }, 'rescue');
  const sign = { attempt: 'theirs', outcome: 'rotated', at: clock.now(), latencyMs: 1 } as const;
  file.put({ set, generation, pair, ...sign });
  clock.jump(0.668 * DAY);
  await clock.pass(2 * SECOND);
  expect(await troublesOf(gateway)).toEqual(['blocked']);
  expect(logged.filter(({ trouble }) => trouble === 'blocked')).toEqual([
    expect.objectContaining({
      msg: expect.stringMatching(/refresh is due.*rescue file.*tokens recover/),
    }),
  ]);
  expect(sandbox.stats.requests.oauthToken).toBe(1);
  file.clear();
  await clock.pass(10 * MINUTE);
  expect(await troublesOf(gateway)).toEqual([]);
  expect(await store.read()).toMatchObject({ generation: 3 });
});

/** At generation 2, which the service has accepted. */
async function startAhead(rescue?: Rescue) {
  const kept = await startKeptOverSandbox(rescue && { rescue });
  await kept.clock.asleep();
  await kept.ask(PERSON);
  return kept;
}

async function troublesOf({ metrics }: Kept['gateway']): Promise<string[]> {
  const found = (await metrics.text()).matchAll(/trouble="([a-z-]+)"\} 1$/gm);
  return [...found].map(([, trouble]) => trouble!);
}
