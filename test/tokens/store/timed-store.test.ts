import { expect, test } from 'vitest';
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
  let now = AT;
  const database = timedDatabase(() => now);
  const [one, other] = [database.open(), database.open()];
  const set = await importInto(one, 'link');
  return { one, other, set, pass: (ms: number) => void (now += ms) };
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
