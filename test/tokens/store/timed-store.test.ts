import { expect, test } from 'vitest';
import { DAY, YEAR } from '../../support/random/manual-clock.ts';
import { timedDatabase } from '../../support/tokens/timed-store.ts';
import {
  AT,
  ending,
  importInto,
  claiming,
  saving,
  tokenStoreContract,
} from './token-store-contract.ts';

tokenStoreContract('with claims that time out', () => timedDatabase(() => AT).open());

const LIFE_MS = claiming('', '').lifeMs;

async function shared() {
  let [passed, ahead] = [0, 0];
  const database = timedDatabase(
    () => AT + passed + ahead,
    () => passed,
    () => AT + passed,
  );
  const [one, other] = [database.open(), database.open()];
  const set = await importInto(one, 'link');
  return {
    one,
    other,
    set,
    open: () => database.open(),
    pass: (ms: number) => void (passed += ms),
    /** Sets the clock of the server. */
    setAhead: (ms: number) => void (ahead = ms),
  };
}

test('a claim excludes other replicas until its time is over, whether its process runs or not', async () => {
  const { one, other, set, pass } = await shared();
  expect(await one.claim(claiming(set, 'a'))).toBeDefined();
  await one.close();
  pass(LIFE_MS - 1);
  expect((await other.read())!.claim).toMatchObject({ attempt: 'a', live: true });
  expect(await other.claim(claiming(set, 'b'))).toBeUndefined();
  pass(1);
  expect(await other.read()).toMatchObject({ claim: { attempt: 'a', live: false }, unanswered: 1 });
});

test('a claim that is taken over after its time says so, because its process may still save a pair', async () => {
  const { one, other, set, pass } = await shared();
  await one.claim(claiming(set, 'a'));
  pass(LIFE_MS);
  expect(await other.claim(claiming(set, 'b'))).toEqual({ exclusive: false });
  expect(await one.save(saving(set, 'a'))).toBe(true);
  expect(await other.save(saving(set, 'b'))).toBe(false);
  expect(await other.read()).toMatchObject({ generation: 2, claim: null, surplus: 1 });
});

test('the claim of an uncertain exchange is taken over at once', async () => {
  const { one, other, set } = await shared();
  await one.claim(claiming(set, 'a'));
  await one.endAttempt('a', ending('uncertain'));
  expect(await other.claim(claiming(set, 'b'))).toBeDefined();
});

test('a claim dated a year ahead ends after its own length, by the clock of each process that saw it', async () => {
  const { one, other, set, open, pass, setAhead } = await shared();
  setAhead(YEAR);
  await one.claim(claiming(set, 'a'));
  setAhead(0);
  expect((await other.read())!.claim).toMatchObject({ live: true, isDatedAhead: true });
  pass(LIFE_MS - 1);
  expect(await other.claim(claiming(set, 'b'))).toBeUndefined();
  const late = open();
  expect((await late.read())!.claim).toMatchObject({ attempt: 'a', live: true });
  pass(1);
  expect(await late.claim(claiming(set, 'b'))).toBeUndefined();
  expect(await other.read()).toMatchObject({
    claim: { attempt: 'a', live: false, isDatedAhead: true },
    unanswered: 1,
  });
  expect(await other.claim({ ...claiming(set, 'b'), over: 'a' })).toEqual({ exclusive: false });
  expect((await late.read())!.claim).toMatchObject({
    attempt: 'b',
    live: true,
    isDatedAhead: false,
  });
});

test('a claim ends after its own length, if the clock of the server is set back while the exchange is under way', async () => {
  const { one, other, set, pass, setAhead } = await shared();
  await one.claim(claiming(set, 'a'));
  await other.read();
  setAhead(-YEAR);
  pass(LIFE_MS - 1);
  expect((await other.read())!.claim).toMatchObject({ live: true });
  pass(1);
  expect((await other.read())!.claim).toMatchObject({ live: false });
  expect(await other.claim(claiming(set, 'b'))).toBeDefined();
});

test('a pair that is saved while the clock of the server is a year behind is not older than the pair before it', async () => {
  const { one, set, pass, setAhead } = await shared();
  pass(DAY);
  setAhead(-YEAR);
  await one.claim(claiming(set, 'a'));
  await one.save({ ...saving(set, 'a'), at: AT + DAY });
  setAhead(0);
  expect((await one.read())!.age).toBeLessThanOrEqual(DAY);
});

test('a pair is not dated ahead because the pair before it was', async () => {
  const { one, set, setAhead } = await shared();
  setAhead(YEAR);
  await one.save({ ...saving(set, 'a'), at: AT });
  setAhead(0);
  expect((await one.read())!.age).toBe(-YEAR);
  await one.save({ ...saving(set, 'b', 2), at: AT });
  expect((await one.read())!.age).toBe(0);
});

test('once a process has recorded the end of a claim dated ahead, every other one finds it ended', async () => {
  const { one, set, open, setAhead } = await shared();
  setAhead(YEAR);
  await one.claim(claiming(set, 'a'));
  setAhead(0);
  await open().endAttempt('a', ending('uncertain'));
  expect((await open().read())!.claim).toMatchObject({ live: false, isDatedAhead: false });
});

test('a refusal of a process of an older version is remembered, however many exchanges followed it', async () => {
  const database = timedDatabase(() => AT);
  const store = database.open();
  const set = await importInto(store, 'link');
  await store.save(saving(set, 'a'));
  database.alter((document) => {
    const outcomes = [
      'early-or-spent',
      ...Array.from({ length: 999 }, () => 'unsent' as const),
    ] as const;
    document.attempts = outcomes.map((outcome, index) => ({
      set,
      attempt: `${index}`,
      generation: 1,
      at: AT,
      outcome,
      latencyMs: 3,
      replica: 'old',
    }));
  });
  expect(await store.read()).toMatchObject({ refusesEarly: true });
  await store.claim(claiming(set, 'b', 2));
  expect(await store.read()).toMatchObject({ refusesEarly: true });
});
