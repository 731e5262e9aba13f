/** A claim that was taken while the clock of the database server was far ahead, and whose process has ended. */
import { expect, test } from 'vitest';
import { DAY, ManualClock, MINUTE, SECOND, YEAR } from '../support/random/manual-clock.ts';
import { startKeptOverSandbox, type Kept } from '../support/tokens/kept.ts';
import { codesOf, PERSON, watchStore } from '../support/tokens/tokens.ts';
import { timedDatabase } from '../support/tokens/timed-store.ts';

test('it ends after its own length, is recorded as uncertain, and the refresh token is sent once more near the expiry', async () => {
  const { clock, store, sandbox, ask, troubles } = await startClaimedAhead();
  expect((await store.read())!.claim).toMatchObject({ live: true, isDatedAhead: true });
  await clock.pass(2 * MINUTE);
  expect((await store.read())!.claim).toMatchObject({ live: true });
  await clock.pass(MINUTE);
  expect((await store.read())!.claim).toMatchObject({ live: false, isDatedAhead: false });
  expect((await store.history(1))[0]).toMatchObject({ attempt: 'theirs', outcome: 'uncertain' });
  expect(await troubles()).toEqual(['uncertain']);
  expect(codesOf(await ask(PERSON))).toEqual([]);
  expect(sandbox.exchanges).toHaveLength(1);
  await clock.pass(DAY);
  expect(await store.read()).toMatchObject({ generation: 3, claim: null, unanswered: 0 });
  expect(sandbox.exchanges.map(({ outcome }) => outcome)).toEqual(['answered', 'answered']);
});

test('a caller whose access token has expired is served again after the length of the claim', async () => {
  const { clock, service, sandbox, ask } = await startClaimedAhead();
  service.ahead += 2 * DAY;
  const asked = ask(PERSON);
  await clock.pass(11 * SECOND);
  expect(codesOf(await asked)).toEqual(['INTERNAL_SERVER_ERROR']);
  await clock.pass(3 * MINUTE);
  expect(codesOf(await ask(PERSON))).toEqual([]);
  expect(sandbox.exchanges.map(({ outcome }) => outcome)).toEqual(['answered', 'answered']);
});

/** At generation 2, with a claim of another process whose end lies a year ahead. */
async function startClaimedAhead() {
  const clock = new ManualClock();
  let ahead = 0;
  const database = timedDatabase(() => clock.now() + ahead, clock.elapsed);
  const store = watchStore(() => database.open());
  const kept = await startKeptOverSandbox({ clock, store });
  await clock.asleep();
  await kept.ask(PERSON);
  const { set, generation } = (await store.read())!;
  ahead = YEAR;
  const claim = { set, generation, attempt: 'theirs', lifeMs: 150 * SECOND, replica: 'other' };
  await database.open().claim(claim);
  ahead = 0;
  // The gateway has seen it.
  await clock.pass(31 * SECOND);
  return { ...kept, troubles: () => troublesOf(kept.gateway) };
}

async function troublesOf({ metrics }: Kept['gateway']): Promise<string[]> {
  const found = (await metrics.text()).matchAll(/trouble="([a-z-]+)"\} 1$/gm);
  return [...found].map(([, trouble]) => trouble!);
}
