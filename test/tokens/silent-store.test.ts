/** A store whose methods never settle: a disk that hangs, or a network. */
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { loggedFor } from '../support/gateway/operator-lines.ts';
import { DAY, ManualClock, MINUTE, SECOND } from '../support/random/manual-clock.ts';
import { startKept, startKeptOverSandbox } from '../support/tokens/kept.ts';
import { codesOf, openTestRescue, PERSON, watchStore } from '../support/tokens/tokens.ts';
import { personUnlikeOthers } from '../support/clients/unlike.ts';

async function start() {
  const { rescue, rescued } = openTestRescue();
  const kept = await startKeptOverSandbox({ revokeOnRefresh: true, rescue });
  await kept.clock.asleep();
  await kept.ask(PERSON);
  return { ...kept, rescued };
}

describe('a save that never settles', () => {
  test('within a second the pair is in the rescue file and in use, and no caller gets an error', async () => {
    const { clock, store, ask, lastBearer, service, sandbox, rescued } = await start();
    const saving = store.hold('save');
    service.ahead += 2 * DAY;
    const asked = ask(personUnlikeOthers());
    await saving.reached;
    expect(rescued()).toBe('');
    await clock.pass(SECOND);
    expect(rescued()).not.toBe('');
    expect(codesOf(await asked)).toEqual([]);
    expect(store.kept).not.toContain(lastBearer());
    expect(sandbox.stats.requests.oauthToken).toBe(2);
    saving.release();
    await clock.pass(MINUTE);
    expect(rescued()).toBe('');
    expect(await store.read()).toMatchObject({ generation: 3, claim: null });
    expect(codesOf(await ask(personUnlikeOthers()))).toEqual([]);
    expect(sandbox.stats.requests.oauthToken).toBe(2);
  });

  test('the save is not repeated while it may still end', async () => {
    const { clock, store, service, ask } = await start();
    const { save } = store;
    const called = Promise.withResolvers<void>();
    let calls = 0;
    store.save = () => {
      calls += 1;
      called.resolve();
      return new Promise(() => {});
    };
    service.ahead += 2 * DAY;
    const asked = ask(personUnlikeOthers());
    await called.promise;
    await clock.pass(MINUTE);
    expect(codesOf(await asked)).toEqual([]);
    expect(calls).toBeGreaterThan(1);
    expect(calls).toBeLessThanOrEqual(7);
    store.save = save;
    await clock.pass(MINUTE);
    expect(await store.read()).toMatchObject({ generation: 3, claim: null });
  });

  test('the gateway can stop, and the pair is in the rescue file', async () => {
    const { clock, store, service, ask, stop, rescued } = await start();
    const saving = store.hold('save');
    service.ahead += 2 * DAY;
    const asked = ask(personUnlikeOthers());
    await saving.reached;
    await within(20 * SECOND, clock, stop());
    await asked;
    expect(rescued()).not.toBe('');
    saving.release();
  });
});

describe.each(['read', 'claim'] as const)('a %s that never settles', (method) => {
  test('callers who need the store get an error after some seconds, nothing is sent, and it recovers', async () => {
    const { clock, store, service, ask, sandbox, logged } = await start();
    const held = store.hold(method);
    service.ahead += 2 * DAY;
    const asked = ask(personUnlikeOthers());
    await held.reached;
    await clock.pass(11 * SECOND);
    expect(loggedFor(logged, await asked)).toMatch(/token store cannot be/);
    expect(sandbox.stats.requests.oauthToken).toBe(1);
    held.release();
    await clock.pass(10 * MINUTE);
    expect(codesOf(await ask(personUnlikeOthers()))).toEqual([]);
    expect(sandbox.stats.requests.oauthToken).toBe(2);
    expect(await store.read()).toMatchObject({ generation: 3, claim: null, unanswered: 0 });
  });

  test('no request is delayed while the access token works', async () => {
    const { clock, store, ask } = await start();
    const held = store.hold(method);
    clock.jump(0.7 * DAY);
    await held.reached;
    expect(codesOf(await ask(personUnlikeOthers()))).toEqual([]);
    held.release();
  });

  test('the gateway can stop', async () => {
    const { clock, store, stop, sandbox } = await start();
    const held = store.hold(method);
    clock.jump(0.7 * DAY);
    await held.reached;
    await within(2 * SECOND, clock, stop());
    expect(sandbox.stats.requests.oauthToken).toBe(1);
    held.release();
  });
});

test('a gateway whose store does not answer at the start reports it, and ends', async () => {
  const [store, clock] = [watchStore(), new ManualClock()];
  const reading = store.hold('read');
  const starting = startKept({ url: 'http://127.0.0.1:1' }, { store, clock });
  const said = starting.then(
    () => 'it started',
    ({ message }: Error) => message,
  );
  await reading.reached;
  await within(11 * SECOND, clock, said);
  expect(await said).toMatch(/cannot be read: no answer .* within 10 s/);
  reading.release();
});

/** Lets at most this much time pass, until that is done. */
async function within(ms: number, clock: ManualClock, work: Promise<unknown>): Promise<void> {
  const done = work.then(() => true);
  for (let passed = 0; !(await Promise.race([done, turns()])); passed += SECOND / 4) {
    expect(passed).toBeLessThan(ms);
    clock.jump(SECOND / 4);
  }
}

/** Enough turns for everything that woke up to do what it can. */
async function turns(): Promise<boolean> {
  for (let turn = 0; turn < 20; turn += 1) await setImmediate();
  return false;
}
