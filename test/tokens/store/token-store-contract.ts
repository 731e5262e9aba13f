import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type {
  Ending,
  HistoryEntry,
  MovedSet,
  NewPair,
  NewSet,
  StoredTokens,
  TokenStore,
} from '../../../src/tokens/store/token-store.ts';
import { pairOf } from '../../support/tokens/tokens.ts';

export const BASE_URL = 'https://recruiting.test';
/** When these tests began: a store that has a clock of its own is used at about this time. */
export const AT = Date.now();
const LIFE_MS = 150_000;
const SIGN = { replica: 'r' };
const OTHER_KEY = Buffer.alloc(32, 7).toString('base64');

/**
 * What the rest of the gateway relies on, whichever store it has.
 *
 * @param open returns an empty store each time
 */
export function tokenStoreContract(
  name: string,
  open: () => TokenStore | Promise<TokenStore>,
): void {
  async function filled(): Promise<{ store: TokenStore; set: string }> {
    const store = await open();
    return { store, set: await importInto(store, 'link') };
  }

  async function refusedOnce(): Promise<{ store: TokenStore; set: string }> {
    const { store, set } = await filled();
    await store.claim(claiming(set, 'a'));
    await store.endAttempt('a', ending('early-or-spent'));
    return { store, set };
  }

  describe(`a token store, ${name}`, () => {
    test('returns null before anything was imported, and has a description', async () => {
      const store = await open();
      expect(await look(store)).toBeNull();
      expect(await store.history(10)).toEqual([]);
      expect(store.description).not.toBe('');
    });

    test('returns exactly what was imported', async () => {
      const store = await open();
      const odd = { ...pairOf('ü "\'\\ \u0000 😀'), expiresIn: 0.5 + 2 ** 40, name: null };
      const expected: StoredTokens = {
        storeId: expect.stringMatching(/./) as string,
        set: expect.stringMatching(/./) as string,
        baseUrl: BASE_URL,
        generation: 1,
        pair: odd,
        attempt: 'import',
        fingerprint: expect.stringMatching(/^[0-9a-f]{8}$/) as string,
        savedAt: expect.any(Number) as number,
        age: expect.any(Number) as number,
        lost: false,
        movedTo: null,
        imported: true,
        claim: null,
        unanswered: 0,
        surplus: 0,
        refusedEarly: false,
        refusesEarly: false,
      };
      expect(await store.import({ ...importing(null, ''), pair: odd })).toEqual({
        kind: 'imported',
        stored: expected,
      });
      expect(await look(store)).toEqual({ ...expected, age: 0 });
    });

    test('keeps a name that is not valid Unicode, and a time with fractions of a millisecond', async () => {
      const { store, set } = await filled();
      const odd = { ...pairOf('a'), name: 'half \ud800' };
      await store.save({ ...saving(set, 'a'), pair: odd, at: AT + 0.25 });
      expect(await look(store)).toMatchObject({
        generation: 2,
        pair: { accessToken: 'access-a' },
      });
    });

    test('computes the age of a pair by its own clock, wherever the pair was meanwhile', async () => {
      const { store } = await filled();
      const moved = await store.moveOut({ to: 'x', replica: 'r' });
      const target = await open();
      await target.moveIn({ ...moved, age: 7_200_000, replica: 'r' });
      const ages = [(await target.read())!.age - 7_200_000];
      for (const age of [3_600_000, 0]) {
        const { set, generation } = (await target.read())!;
        await target.save({ ...saving(set, `a${age}`, generation), at: AT - age });
        ages.push((await target.read())!.age - age);
      }
      for (const age of ages) {
        expect(age).toBeGreaterThanOrEqual(0);
        expect(age).toBeLessThan(Date.now() - AT + 1_000);
      }
    });

    test('accepts the same claim twice, but not after its attempt has ended', async () => {
      const { store, set } = await filled();
      expect(await store.claim(claiming(set, 'a'))).toBeDefined();
      expect(await store.claim(claiming(set, 'a'))).toBeDefined();
      expect(await store.claim(claiming(set, 'b'))).toBeUndefined();
      expect(await store.history(9)).toHaveLength(2);
      await store.endAttempt('a', ending('unsent'));
      expect(await store.claim(claiming(set, 'a'))).toBeUndefined();
      expect(await store.claim(claiming(set, 'b'))).toBeDefined();
    });

    test('imports nothing if another pair is the newest one than the import expects', async () => {
      const { store, set } = await filled();
      const before = await look(store);
      for (const after of [null, { set, generation: 2 }, { set: 'other', generation: 1 }]) {
        expect(await store.import(importing(after, 'new'))).toEqual({ kind: 'overtaken' });
      }
      expect(await look(store)).toEqual(before);
    });

    test('recognizes every refresh token that it ever had, in use or spent', async () => {
      const { store, set } = await filled();
      const known = async (pair: string, current: boolean, generation: number) =>
        expect(await store.import(importing(await look(store), pair))).toEqual({
          kind: 'known',
          generation,
          current,
        });
      await known('link', true, 1);
      for (let head = 1; head < 5; head += 1) await store.save(saving(set, `s${head}`, head));
      await importInto(store, 'second');
      await known('link', false, 1);
      await known('s1', false, 2);
      await known('s4', false, 5);
      await known('second', true, 6);
    });

    test('gives each import a set of its own; generations only grow', async () => {
      const store = await open();
      const sets = new Set<string>();
      const seen: number[] = [];
      for (let round = 0; round < 6; round += 1) {
        if (round % 3 === 0) sets.add(await importInto(store, `i${round}`));
        else await store.save(saving([...sets].at(-1)!, `s${round}`, seen.at(-1)));
        seen.push((await look(store))!.generation);
      }
      expect(seen).toEqual([1, 2, 3, 4, 5, 6]);
      expect(sets.size).toBe(2);
    });

    test('withdraws an import that the service rejected: the set before it is in use again', async () => {
      const { store, set } = await filled();
      const refused = await importInto(store, 'refused');
      expect(await store.withdraw(set)).toBe(false);
      expect(await store.withdraw(refused)).toBe(true);
      expect(await look(store)).toMatchObject({ set, generation: 1, pair: pairOf('link') });
      expect(await store.withdraw(refused)).toBe(false);
      expect(await store.claim(claiming(set, 'a'))).toBeDefined();
    });

    test('withdraws no import if the set before it is lost, moved or missing', async () => {
      const { store, set } = await filled();
      expect(await store.withdraw(set)).toBe(false);
      await store.claim(claiming(set, 'a'));
      await store.endAttempt('a', ending('invalid-grant'));
      const second = await importInto(store, 'second');
      expect(await store.withdraw(second)).toBe(false);
      await store.moveOut({ to: 'x', replica: 'r' });
      const third = await importInto(store, 'third');
      expect(await store.withdraw(third)).toBe(false);
      expect(await look(store)).toMatchObject({ set: third });
    });

    test('withdraws an import that is lost, but not during its exchange', async () => {
      const { store, set } = await filled();
      const refused = await importInto(store, 'refused');
      await store.claim(claiming(refused, 'a', 2));
      expect(await store.withdraw(refused)).toBe(false);
      await store.endAttempt('a', ending('uncertain'));
      expect(await store.withdraw(refused)).toBe(false);
      await store.claim(claiming(refused, 'b', 2));
      await store.endAttempt('b', ending('invalid-grant'));
      expect(await store.withdraw(refused)).toBe(true);
      expect(await look(store)).toMatchObject({ set, lost: false });
      expect(await store.import(importing(await look(store), 'refused'))).toMatchObject({
        kind: 'known',
        generation: 2,
        current: false,
      });
      expect((await look(store))!.generation).toBe(1);
      await importInto(store, 'third');
      expect((await look(store))!.generation).toBe(3);
    });

    test('grants a claim to one process only, also of two at the same time', async () => {
      const { store, set } = await filled();
      const claims = await Promise.all([
        store.claim(claiming(set, 'a')),
        store.claim(claiming(set, 'b')),
      ]);
      expect(claims.filter(Boolean)).toHaveLength(1);
      const attempt = claims[0] ? 'a' : 'b';
      expect(await store.claim(claiming(set, 'c'))).toBeUndefined();
      expect(await look(store)).toMatchObject({
        claim: { attempt, live: true },
        unanswered: 0,
      });
    });

    test('grants no claim for anything but the newest generation', async () => {
      const { store, set } = await filled();
      await store.save(saving(set, 'a'));
      for (const generation of [0, 1, 3]) {
        expect(await store.claim(claiming(set, 'b', generation))).toBeUndefined();
      }
      expect(await store.claim(claiming('other', 'b', 2))).toBeUndefined();
      expect(await store.claim(claiming(set, 'b', 2))).toBeDefined();
    });

    test.each(['unsent', 'rate-limited', 'refused'] as const)(
      'ends the claim after %s, and nothing is uncertain',
      async (outcome) => {
        const { store, set } = await filled();
        await store.claim(claiming(set, 'a'));
        await store.endAttempt('a', ending(outcome));
        expect(await look(store)).toMatchObject({ claim: null, lost: false, unanswered: 0 });
        expect(await store.claim(claiming(set, 'b'))).toBeDefined();
      },
    );

    test('ends the claim after early-or-spent, and nothing is lost or uncertain', async () => {
      const { store, set } = await refusedOnce();
      expect(await look(store)).toMatchObject({
        claim: null,
        lost: false,
        unanswered: 0,
        refusedEarly: true,
        refusesEarly: false,
      });
      expect(outcomesIn(await store.history(9))).toEqual(['imported', 'early-or-spent']);
      // Repeated, as when its outcome was unknown.
      await store.endAttempt('a', ending('early-or-spent'));
      expect(await look(store)).toMatchObject({ set, refusedEarly: true, generation: 1 });
    });

    test('grants no claim on a refresh token that was refused early to a caller that has not seen it', async () => {
      const { store, set } = await refusedOnce();
      const unseen = { ...claiming(set, 'b'), over: null, knowsRefusal: false };
      expect(await store.claim(unseen)).toBeUndefined();
      expect(await store.claim({ ...unseen, knowsRefusal: true })).toBeDefined();
    });

    test('knows that the service refuses early once such a refresh token gave a pair, also for later imports', async () => {
      const { store, set } = await refusedOnce();
      await store.claim(claiming(set, 'b'));
      await store.save(saving(set, 'b'));
      const learned = { refusedEarly: false, refusesEarly: true, lost: false };
      expect(await look(store)).toMatchObject({ generation: 2, ...learned });
      expect(outcomesIn(await store.history(9))).toEqual(['imported', 'early', 'rotated']);
      await importInto(store, 'second');
      expect(await look(store)).toMatchObject({ generation: 3, ...learned });
    });

    test('knows nothing of the service if the pair came from an exchange before the refusal: the token was spent', async () => {
      const { store, set } = await filled();
      await store.claim(claiming(set, 'first'));
      await store.endAttempt('first', ending('uncertain'));
      await store.claim(claiming(set, 'second'));
      await store.endAttempt('second', ending('early-or-spent'));
      expect(await look(store)).toMatchObject({ refusedEarly: true, unanswered: 1, claim: null });
      await store.save(saving(set, 'first'));
      expect(await look(store)).toMatchObject({ refusedEarly: false, refusesEarly: false });
      expect(outcomesIn(await store.history(9))).toEqual(['imported', 'rotated', 'spent']);
    });

    test('says lost when a refresh token that was refused early is refused again', async () => {
      const { store, set } = await refusedOnce();
      await store.claim(claiming(set, 'b'));
      await store.endAttempt('b', ending('invalid-grant'));
      expect(await look(store)).toMatchObject({
        lost: true,
        refusedEarly: false,
        refusesEarly: false,
      });
      expect(outcomesIn(await store.history(9))).toEqual(['imported', 'spent', 'spent']);
      // As an import that was a mistake.
      await importInto(store, 'second');
      expect(await look(store)).toMatchObject({ lost: false, refusedEarly: false });
    });

    test('remembers for many attempts that the service refuses early', async () => {
      const { store, set } = await refusedOnce();
      await store.claim(claiming(set, 'b'));
      await store.save(saving(set, 'b'));
      for (let number = 0; number < 30; number += 1) {
        await store.claim(claiming(set, `c${number}`, 2));
        await store.endAttempt(`c${number}`, ending('unsent'));
      }
      expect(await look(store)).toMatchObject({ refusesEarly: true });
    });

    test('gives away with a set what is known of refusals', async () => {
      const { store, set } = await refusedOnce();
      const moved = await store.moveOut({ to: 'x', replica: 'r' });
      expect(moved).toMatchObject({ refusedEarly: true, refusesEarly: false });
      const target = await open();
      await target.moveIn({ ...moved, replica: 'r' });
      expect(await look(target)).toMatchObject({ refusedEarly: true, refusesEarly: false });
      expect(set).not.toBe((await look(target))!.set);
      const other = await open();
      await other.moveIn({ ...moved, refusedEarly: false, refusesEarly: true, replica: 'r' });
      expect(await look(other)).toMatchObject({ refusedEarly: false, refusesEarly: true });
    });

    test('does not move a set that is still uncertain after a rejected repetition', async () => {
      const { store, set } = await filled();
      await store.claim(claiming(set, 'a'));
      await store.endAttempt('a', ending('uncertain'));
      await store.claim(claiming(set, 'b'));
      await store.endAttempt('b', ending('rate-limited'));
      expect(await look(store)).toMatchObject({ claim: null, unanswered: 1 });
      await expect(store.moveOut({ to: 'other', replica: 'test' })).rejects.toThrow(/uncertain/);
    });

    test('grants no claim over an uncertain one that the caller has not seen', async () => {
      const { store, set } = await filled();
      await store.claim(claiming(set, 'a'));
      await store.endAttempt('a', ending('uncertain'));
      for (const over of [null, 'other']) {
        expect(await store.claim({ ...claiming(set, 'b'), over })).toBeUndefined();
      }
      expect((await look(store))!.claim?.attempt).toBe('a');
      expect(await store.claim({ ...claiming(set, 'b'), over: 'a' })).toBeDefined();
    });

    test('allows another claim after uncertain, and stays uncertain until that is resolved', async () => {
      const { store, set } = await filled();
      await store.claim(claiming(set, 'a'));
      await store.endAttempt('a', ending('uncertain'));
      const mine = { attempt: 'a', live: false };
      expect(await look(store)).toMatchObject({ claim: mine, lost: false, unanswered: 1 });
      expect(await store.claim(claiming(set, 'b'))).toBeDefined();
      expect(await look(store)).toMatchObject({
        claim: { attempt: 'b', live: true },
        unanswered: 1,
      });
      await store.endAttempt('b', ending('uncertain'));
      expect(await look(store)).toMatchObject({ claim: { live: false }, unanswered: 2 });
      await store.claim(claiming(set, 'c'));
      await store.save(saving(set, 'c'));
      expect(await look(store)).toMatchObject({ generation: 2, claim: null, unanswered: 0 });
    });

    test('records no ending for an attempt that is unknown or has no claim', async () => {
      const { store, set } = await filled();
      await store.claim(claiming(set, 'a'));
      await store.endAttempt('a', ending('uncertain'));
      await store.claim(claiming(set, 'b'));
      const before = await look(store);
      await store.endAttempt('nobody', ending('invalid-grant'));
      await store.endAttempt('a', ending('unsent'));
      expect(await look(store)).toMatchObject({ claim: before!.claim, lost: false });
    });

    test('records a loss, and deletes nothing', async () => {
      const { store, set } = await filled();
      await store.claim(claiming(set, 'a'));
      await store.endAttempt('a', ending('invalid-grant'));
      expect(await look(store)).toMatchObject({ lost: true, claim: null, pair: pairOf('link') });
    });

    test('records no loss of a generation that is no longer the newest', async () => {
      const { store, set } = await filled();
      await store.claim(claiming(set, 'a'));
      await store.endAttempt('a', ending('uncertain'));
      await store.save(saving(set, 'b'));
      await store.endAttempt('a', ending('invalid-grant'));
      expect(await look(store)).toMatchObject({ generation: 2, lost: false });
    });

    test('makes a saved pair the newest one, and ends the claim', async () => {
      const { store, set } = await filled();
      await store.claim(claiming(set, 'a'));
      const imported = (await look(store))!;
      expect(await store.save(saving(set, 'a'))).toBe(true);
      const stored = (await look(store))!;
      expect(stored).toMatchObject({ set, generation: 2, pair: pairOf('a') });
      expect(stored.attempt).toBe('a');
      expect(stored).toMatchObject({ lost: false, imported: false, claim: null, unanswered: 0 });
      expect(stored.fingerprint).not.toBe(imported.fingerprint);
      expect(await store.claim(claiming(set, 'b', 2))).toBeDefined();
    });

    test('saves a pair even if its claim is gone or was taken over', async () => {
      const { store, set } = await filled();
      await store.claim(claiming(set, 'a'));
      await store.endAttempt('a', ending('uncertain'));
      await store.claim(claiming(set, 'b'));
      expect(await store.save(saving(set, 'a'))).toBe(true);
      expect(await look(store)).toMatchObject({ generation: 2, pair: pairOf('a') });
    });

    test('keeps a second pair of a generation beside the first one, which stays in use', async () => {
      const { store, set } = await filled();
      expect(await store.save(saving(set, 'a'))).toBe(true);
      expect(await store.save(saving(set, 'b'))).toBe(false);
      expect(await look(store)).toMatchObject({ generation: 2, pair: pairOf('a'), surplus: 1 });
      await store.save(saving(set, 'c', 2));
      expect(await look(store)).toMatchObject({ generation: 3, pair: pairOf('c'), surplus: 0 });
    });

    test('accepts a late save, and never goes back to an older generation', async () => {
      const { store, set } = await filled();
      await store.save(saving(set, 'b', 1));
      await store.save(saving(set, 'c', 2));
      await store.claim(claiming(set, 'd', 3));
      const before = await look(store);
      expect(await store.save(saving(set, 'late', 1))).toBe(false);
      expect(await look(store)).toEqual(before);
    });

    test('accepts the same save twice, also much later', async () => {
      const { store, set } = await filled();
      for (let head = 1; head < 6; head += 1) await store.save(saving(set, `s${head}`, head));
      await store.save(saving(set, 'beside', 5));
      const before = await look(store);
      for (const head of [1, 4, 5]) {
        expect(await store.save(saving(set, `s${head}`, head))).toBe(true);
      }
      expect(await store.save(saving(set, 'beside', 5))).toBe(false);
      expect(await look(store)).toEqual(before);
      expect(before).toMatchObject({ generation: 6, surplus: 1 });
    });

    test('accepts a pair with the same refresh token as before', async () => {
      const { store, set } = await filled();
      const pair = { ...pairOf('a'), refreshToken: pairOf('link').refreshToken };
      await store.save({ ...saving(set, 'a'), pair, outcome: 'same-refresh-token' });
      expect(await look(store)).toMatchObject({ generation: 2, pair });
    });

    test('does not replace a new import by a late save of the set before it', async () => {
      const { store, set } = await filled();
      await store.claim(claiming(set, 'a'));
      const second = await importInto(store, 'second');
      const before = await look(store);
      await store.save(saving(set, 'a'));
      expect(await look(store)).toEqual(before);
      expect(before).toMatchObject({ set: second, claim: null });
      await store.withdraw(second);
      expect(await look(store)).toMatchObject({ set, generation: 2, pair: pairOf('a') });
    });

    test('keeps a saved pair when the same attempt brings another one', async () => {
      const { store, set } = await filled();
      await store.claim(claiming(set, 'a'));
      await store.save(saving(set, 'a'));
      const before = [await look(store), await store.history(9)];
      for (const outcome of ['uncertain', 'unsent', 'invalid-grant'] as const) {
        await store.endAttempt('a', ending(outcome));
      }
      expect([await look(store), await store.history(9)]).toEqual(before);
    });

    test('ends the claim when a second pair of a generation is saved', async () => {
      const { store, set } = await filled();
      await store.save(saving(set, 'a'));
      await store.claim(claiming(set, 'b', 2));
      expect(await store.save(saving(set, 'b', 1))).toBe(false);
      expect(await look(store)).toMatchObject({ generation: 2, claim: null });
      expect(await store.claim(claiming(set, 'c', 2))).toBeDefined();
    });

    test('rejects a save of an unknown set', async () => {
      const store = await open();
      await expect(store.save(saving('nowhere', 'a'))).rejects.toThrow(/not know the set nowhere/);
      expect(await look(store)).toBeNull();
    });

    test('accepts a pair that is several generations ahead: the store may be an older copy', async () => {
      const { store, set } = await filled();
      await store.claim(claiming(set, 'before the copy'));
      expect(await store.save(saving(set, 'd', 4))).toBe(true);
      const restored = await look(store);
      expect(restored).toMatchObject({ set, generation: 5, pair: pairOf('d'), attempt: 'd' });
      expect(restored).toMatchObject({ claim: null, lost: false, unanswered: 0, surplus: 0 });
      expect(await store.save(saving(set, 'd', 4))).toBe(true);
      expect(await store.save(saving(set, 'c', 3))).toBe(false);
      expect(await store.save(saving(set, 'a', 1))).toBe(false);
      expect(await look(store)).toEqual(restored);
      expect(await store.import(importing(restored, 'd'))).toMatchObject({ current: true });
    });

    test('accepts the pair of an unknown set, if it is empty', async () => {
      const store = await open();
      const pair = { ...saving('taken away', 'd', 4), home: homeOf(store) };
      expect(await store.save(pair)).toBe(true);
      const stored = (await look(store))!;
      expect(stored).toMatchObject({ set: 'taken away', generation: 5, pair: pairOf('d') });
      expect(stored).toMatchObject({ baseUrl: BASE_URL, imported: false });
      expect(await store.save(pair)).toBe(true);
      expect(await look(store)).toEqual(stored);
      expect(await store.claim(claiming('taken away', 'e', 5))).toBeDefined();
    });

    test('keeps the pair of such a set behind one that was imported meanwhile', async () => {
      const store = await open();
      const set = await importInto(store, 'meanwhile');
      const before = await look(store);
      expect(await store.save({ ...saving('taken away', 'd', 4), home: homeOf(store) })).toBe(true);
      expect(await look(store)).toEqual(before);
      expect(await store.import(importing(before, 'd'))).toMatchObject({
        kind: 'known',
        current: false,
      });
      expect(await store.withdraw(set)).toBe(true);
      expect(await look(store)).toMatchObject({ set: 'taken away', generation: 5 });
    });

    test('makes such a set the current one if it is an older copy of the store that knew it', async () => {
      const { store } = await filled();
      const { storeId, ...before } = (await look(store))!;
      const home = { ...homeOf(store), storeId };
      expect(await store.save({ ...saving('newer', 'd', 4), home })).toBe(true);
      expect(await look(store)).toMatchObject({ set: 'newer', generation: 5, pair: pairOf('d') });
      expect(await store.claim(claiming('newer', 'e', 5))).toBeDefined();
      // What was imported into the copy since is newer still.
      expect(await store.save({ ...saving('older', 'a', before.generation), home })).toBe(true);
      expect(await look(store)).toMatchObject({ set: 'newer', generation: 5 });
    });

    test('rejects a pair of another service', async () => {
      const { store, set } = await filled();
      const home = { ...homeOf(store), baseUrl: 'https://elsewhere.test' };
      await expect(store.save({ ...saving('theirs', 'd', 4), home })).rejects.toThrow(
        `belongs to ${BASE_URL}`,
      );
      expect(await look(store)).toMatchObject({ set });
    });

    test('says which pairs it has had, also earlier ones and those of withdrawn sets', async () => {
      const { store, set } = await filled();
      const pairs = [saving(set, 'b', 1), saving(set, 'c', 2), saving(set, 'd', 3)];
      for (const pair of pairs) {
        expect(await store.holds(pair)).toBe(false);
        await store.save(pair);
        expect(await store.holds(pair)).toBe(true);
      }
      expect(await store.holds(saving(set, 'e', 4))).toBe(false);
      expect(await store.holds(saving('unknown', 'x', 4))).toBe(false);
      // As after a move: the same refresh token, under another name.
      expect(await store.holds(saving('named otherwise', 'd', 3))).toBe(true);
      const before = await look(store);
      await store.import(importing(before, 'imported'));
      expect(await store.holds(pairs[2]!)).toBe(true);
      const imported = {
        ...saving((await look(store))!.set, 'import', 4),
        pair: pairOf('imported'),
      };
      await store.withdraw(imported.set);
      expect(await store.holds(imported)).toBe(true);
    });

    test('rejects a pair of an unknown set that has no home', async () => {
      const store = await open();
      await expect(store.save(saving('nowhere', 'a'))).rejects.toThrow(/not know/);
      expect(await look(store)).toBeNull();
    });

    test('is no longer lost when a pair is saved after all', async () => {
      const { store, set } = await filled();
      await store.claim(claiming(set, 'a'));
      await store.endAttempt('a', ending('invalid-grant'));
      await store.save(saving(set, 'b'));
      expect(await look(store)).toMatchObject({ generation: 2, lost: false, pair: pairOf('b') });
    });

    test('has a history, newest first, without tokens', async () => {
      const { store, set } = await filled();
      await store.claim({ ...claiming(set, 'a'), replica: 'one' });
      await store.endAttempt('a', { outcome: 'uncertain', latencyMs: 7 });
      await store.claim({ ...claiming(set, 'b'), replica: 'two' });
      await store.save(saving(set, 'b'));
      await store.claim(claiming(set, 'c', 2));
      const history = await store.history(10);
      expect(history).toMatchObject([
        { generation: 2, attempt: 'c', outcome: 'begun', latencyMs: null },
        {
          generation: 1,
          attempt: 'b',
          outcome: 'rotated',
          latencyMs: 3,
          replica: 'two',
        },
        { generation: 1, attempt: 'a', outcome: 'uncertain', latencyMs: 7, replica: 'one' },
        { generation: 1, outcome: 'imported', latencyMs: null, replica: 'test' },
      ]);
      expect(await store.history(2)).toEqual(history.slice(0, 2));
      expect(JSON.stringify(history)).not.toMatch(/access-|refresh-/);
    });

    test('moves a set out once, and grants no claim for it afterwards', async () => {
      const { store, set } = await filled();
      await store.save(saving(set, 'a'));
      const moved = await store.moveOut({ to: 'x', replica: 'r' });
      expect(moved).toMatchObject({ baseUrl: BASE_URL, generation: 2, pair: pairOf('a') });
      expect(moved).toMatchObject({ imported: false });
      const [{ key, known }] = moved.fingerprints as [MovedSet['fingerprints'][number]];
      for (const [generation, pair] of [[1, 'link'] as const, [2, 'a'] as const]) {
        const { refreshToken } = pairOf(pair);
        const fingerprint = createHmac('sha256', Buffer.from(key, 'base64'))
          .update(refreshToken)
          .digest('hex')
          .slice(0, 16);
        expect(known).toMatchObject({ [fingerprint]: generation });
      }
      expect(await look(store)).toMatchObject({ movedTo: 'x', pair: pairOf('a') });
      expect(await store.claim(claiming(set, 'b', 2))).toBeUndefined();
      expect(await store.moveOut({ to: 'x', replica: 'r' })).toEqual({
        ...moved,
        age: expect.any(Number) as number,
      });
      await expect(store.moveOut({ to: 'y', replica: 'r' })).rejects.toThrow('x');
      await store.moveBack('y');
      expect(await store.claim(claiming(set, 'b', 2))).toBeUndefined();
      await store.moveBack('x');
      expect(await store.claim(claiming(set, 'b', 2))).toBeDefined();
    });

    test('moves no set out that is missing, lost, in an exchange or uncertain', async () => {
      const move = { to: 'x', replica: 'r' };
      await expect((await open()).moveOut(move)).rejects.toThrow(Error);
      const { store, set } = await filled();
      await store.claim(claiming(set, 'a'));
      await expect(store.moveOut(move)).rejects.toThrow(/under way/);
      await store.endAttempt('a', ending('uncertain'));
      await expect(store.moveOut(move)).rejects.toThrow(/uncertain/);
      await store.claim(claiming(set, 'b'));
      await store.endAttempt('b', ending('invalid-grant'));
      await expect(store.moveOut(move)).rejects.toThrow(/lost/);
      expect(await look(store)).toMatchObject({ movedTo: null });
    });

    test('takes over a set with everything that is known of it', async () => {
      const source = await filled();
      await source.store.save(saving(source.set, 'a'));
      const moved = await source.store.moveOut({ to: 'x', replica: 'r' });
      const store = await open();
      await store.moveIn({ ...moved, replica: 'r' });
      const stored = (await look(store))!;
      const { fingerprints: _, generation, age: _age, ...same } = moved;
      expect(stored).toMatchObject({ ...same, lost: false, movedTo: null, claim: null });
      expect(stored.generation).toBeGreaterThanOrEqual(generation);
      expect(stored.set).not.toBe(source.set);
      expect(await store.claim(claiming(stored.set, 'b', stored.generation))).toBeDefined();
      expect(await store.import(importing(stored, 'link'))).toMatchObject({
        kind: 'known',
        current: false,
      });
    });

    test('takes over a set once, and changes nothing the second time', async () => {
      const store = await open();
      await store.moveIn(moving('a'));
      const before = await look(store);
      await store.moveIn(moving('a'));
      expect(await look(store)).toEqual(before);
    });

    test('finishes an interrupted move, and takes nothing over twice', async () => {
      const { store: source } = await filled();
      const target = await open();
      const moveOut = async (to: string) => ({
        ...(await source.moveOut({ ...SIGN, to })),
        ...SIGN,
      });
      await source.moveOut({ ...SIGN, to: 'b' });
      await target.moveIn(await moveOut('b'));
      const { set, generation } = (await look(target))!;
      await target.save(saving(set, 'next', generation));
      const rotated = await look(target);

      // If this were refused, the source would take back a set whose token is spent.
      await target.moveIn(await moveOut('b'));
      expect(await look(target)).toEqual(rotated);
      await target.moveOut({ ...SIGN, to: 'c' });
      await target.moveIn(await moveOut('b'));
      expect(await look(target)).toEqual({ ...rotated, movedTo: 'c' });
    });

    test('takes a moved set back if there was no exchange in between', async () => {
      const { store: one } = await filled();
      const other = await open();
      for (let round = 0; round < 3; round += 1) {
        await other.moveIn({ ...(await one.moveOut({ ...SIGN, to: 'b' })), ...SIGN });
        expect([(await look(one))!.movedTo, (await look(other))!.movedTo]).toEqual(['b', null]);
        await one.moveIn({ ...(await other.moveOut({ ...SIGN, to: 'a' })), ...SIGN });
        expect([(await look(one))!.movedTo, (await look(other))!.movedTo]).toEqual([null, 'a']);
      }
      expect(await look(one)).toMatchObject({ pair: pairOf('link'), imported: true });
    });

    test('recognizes spent tokens after any number of moves', async () => {
      const stores = [await open(), await open(), await open()] as const;
      await importInto(stores[0], 'link');
      for (const [index, from] of stores.slice(0, 2).entries()) {
        const { set, generation } = (await from.read())!;
        await from.save(saving(set, `s${index}`, generation));
        await stores[index + 1]!.moveIn({ ...(await from.moveOut({ ...SIGN, to: 'x' })), ...SIGN });
      }
      for (const spent of ['link', 's0']) {
        const outcome = await stores[2].import(importing(await look(stores[2]), spent));
        expect(outcome).toMatchObject({ kind: 'known', current: false });
      }
      expect(await look(stores[2])).toMatchObject({ pair: pairOf('s1') });
    });

    test('has moves in its history', async () => {
      const { store: source } = await filled();
      const target = await open();
      await target.moveIn({ ...(await source.moveOut({ ...SIGN, to: 'x' })), ...SIGN });
      const [out] = await source.history(1);
      expect(out).toMatchObject({ outcome: 'moved-out', generation: 1, replica: 'r' });
      expect(await target.history(9)).toMatchObject([{ outcome: 'moved-in', replica: 'r' }]);
    });

    test('does not replace a set in use by one that is moved in', async () => {
      const { store, set } = await filled();
      const before = await look(store);
      await expect(store.moveIn(moving('a'))).rejects.toThrow(/in use/);
      expect(await look(store)).toEqual(before);
      await store.claim(claiming(set, 'a'));
      await store.endAttempt('a', ending('invalid-grant'));
      await store.moveIn(moving('a'));
      const stored = await look(store);
      expect(stored).toMatchObject({ lost: false, pair: pairOf('a') });
      expect(stored!.generation).toBeGreaterThan(before!.generation);
    });
  });
}

/** The content of the store, without ages: these grow between two readings. */
export async function look(store: TokenStore): Promise<StoredTokens | null> {
  return ageless(await store.read());
}

export function ageless(stored: StoredTokens | null): StoredTokens | null {
  return stored && { ...stored, age: 0, claim: stored.claim && { ...stored.claim, age: 0 } };
}

export async function importInto(store: TokenStore, pair: string): Promise<string> {
  const outcome = await store.import(importing(await look(store), pair));
  if (outcome.kind !== 'imported') throw new Error(outcome.kind);
  return outcome.stored.set;
}

export function importing(after: NewSet['after'], pair: string): NewSet {
  return { baseUrl: BASE_URL, pair: pairOf(pair), replica: 'test', after };
}

export function claiming(set: string, attempt: string, generation = 1) {
  return { set, generation, attempt, lifeMs: LIFE_MS, replica: 'test' };
}

export function ending(outcome: Ending['outcome']): Ending {
  return { outcome, latencyMs: 3 };
}

export function saving(set: string, attempt: string, generation = 1): NewPair {
  const pair = pairOf(attempt);
  return { set, generation, attempt, pair, outcome: 'rotated', at: AT + 5, latencyMs: 3 };
}

/** Oldest first. */
function outcomesIn(history: readonly HistoryEntry[]): string[] {
  return history.map(({ outcome }) => outcome).toReversed();
}

function homeOf(store: TokenStore) {
  return { store: store.description, storeId: 'taken away', baseUrl: BASE_URL };
}

function moving(pair: string) {
  return {
    baseUrl: BASE_URL,
    generation: 4,
    pair: pairOf(pair),
    age: 1_000,
    imported: false,
    refusedEarly: false,
    refusesEarly: false,
    fingerprints: [{ key: OTHER_KEY, known: {} }],
    replica: 'test',
  };
}
