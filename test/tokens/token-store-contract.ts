import { describe, expect, test } from 'vitest';
import type { StoredTokens, TokenStore } from '../../src/tokens/token-store.ts';
import { pairOf } from '../support/tokens.ts';

const BASE_URL = 'https://recruiting.test';
const AT = 1_700_000_000_000;

/** What the rest of the gateway relies on, whichever store it is. `open` gives an empty one each time. */
export function tokenStoreContract(name: string, open: () => TokenStore): void {
  async function filled(): Promise<TokenStore> {
    const store = open();
    await store.import(importing());
    return store;
  }

  describe(`a token store, ${name}`, () => {
    test('reads null before anything was imported, and says which store it is', async () => {
      const store = open();
      expect(await store.read()).toBeNull();
      expect(store.description).not.toBe('');
    });

    test('gives back what was imported, to the letter', async () => {
      const store = open();
      const odd = {
        ...pairOf('ü "\'\\ \u0000 😀'),
        expiresIn: 0.5 + 2 ** 40,
        name: null,
      };
      const expected: StoredTokens = {
        baseUrl: BASE_URL,
        generation: 1,
        pair: odd,
        savedAt: AT,
        lost: false,
        imported: true,
        mark: null,
      };

      expect(await store.import({ ...importing(), pair: odd })).toEqual(expected);
      expect(await store.read()).toEqual(expected);
    });

    test('imports nothing when the head is not the one that was to be followed', async () => {
      const store = await filled();
      const before = await store.read();
      expect(await store.import(importing(0, 'late'))).toBeNull();
      expect(await store.import(importing(2, 'early'))).toBeNull();
      expect(await store.read()).toEqual(before);
    });

    test('lets one mark in, of two at the same time too', async () => {
      const store = await filled();
      const marked = await Promise.all([store.mark(mark('a')), store.mark(mark('b'))]);
      expect(marked.filter(Boolean)).toHaveLength(1);
      expect(await store.mark(mark('c', 1, AT + 999))).toBe(false);
      expect((await store.read())?.mark).toEqual({
        attempt: marked[0] ? 'a' : 'b',
        until: AT + 1000,
      });
    });

    test('lets an expired mark be taken over, from its very end', async () => {
      const store = await filled();
      await store.mark(mark('a'));
      expect(await store.mark(mark('b', 1, AT + 1000))).toBe(true);
      expect((await store.read())?.mark?.attempt).toBe('b');
    });

    test('refuses a mark for a generation that is not the head', async () => {
      const store = await filled();
      await store.save(saving('a'));
      for (const generation of [0, 1, 3]) {
        expect(await store.mark(mark('b', generation))).toBe(false);
      }
      expect(await store.mark(mark('b', 2))).toBe(true);
    });

    test('takes away the mark of the attempt that asks, and no other', async () => {
      const store = await filled();
      await store.mark(mark('a'));
      await store.unmark('b');
      expect((await store.read())?.mark?.attempt).toBe('a');
      await store.unmark('a');
      expect((await store.read())?.mark).toBeNull();
      expect(await store.mark(mark('b'))).toBe(true);
    });

    test('moves the head with a save, and clears the mark', async () => {
      const store = await filled();
      await store.mark(mark('a'));
      await store.save(saving('a'));
      expect(await store.read()).toEqual({
        baseUrl: BASE_URL,
        generation: 2,
        pair: pairOf('a'),
        savedAt: AT + 5,
        lost: false,
        imported: false,
        mark: null,
      });
    });

    test('keeps a save whose mark is gone', async () => {
      const store = await filled();
      await store.mark(mark('a'));
      await store.unmark('a');
      await store.save(saving('a'));
      expect(await store.read()).toMatchObject({ generation: 2, pair: pairOf('a') });
    });

    test('keeps a save whose mark was taken over', async () => {
      const store = await filled();
      await store.mark(mark('a'));
      await store.mark(mark('b', 1, AT + 1000));
      await store.save(saving('a'));
      expect(await store.read()).toMatchObject({ generation: 2, pair: pairOf('a') });
    });

    test('takes a save after the head has moved, and moves nothing back', async () => {
      const store = await filled();
      await store.save(saving('b', 1));
      await store.save(saving('c', 2));
      await store.mark(mark('d', 3));
      const before = await store.read();
      await store.save(saving('late', 1));
      expect(await store.read()).toEqual(before);
      expect(before).toMatchObject({ generation: 3, mark: { attempt: 'd' } });
    });

    test('does not put a late save of the set before in the place of a new import', async () => {
      const store = await filled();
      await store.mark(mark('a'));
      await store.lose(1);
      const imported = await store.import(importing(1, 'new'));
      await store.save(saving('a', 1));
      expect(await store.read()).toEqual(imported);
    });

    test('takes the same save twice', async () => {
      const store = await filled();
      await store.save(saving('a'));
      await store.save(saving('a'));
      expect(await store.read()).toMatchObject({ generation: 2, pair: pairOf('a') });
    });

    test('does not take a save into an empty store for done', async () => {
      const store = open();
      await expect(store.save(saving('a'))).rejects.toThrow('generation 1');
      expect(await store.read()).toBeNull();
    });

    test('remembers a loss, and deletes nothing for it', async () => {
      const store = await filled();
      await store.lose(1);
      expect(await store.read()).toMatchObject({
        generation: 1,
        lost: true,
        pair: pairOf('link'),
      });
    });

    test('takes no loss of a generation that is not the head', async () => {
      const store = await filled();
      await store.save(saving('a'));
      await store.lose(1);
      expect(await store.read()).toMatchObject({ generation: 2, lost: false });
    });

    test('ends a loss with a save that comes after all', async () => {
      const store = await filled();
      await store.mark(mark('a'));
      await store.lose(1);
      await store.save(saving('a'));
      expect(await store.read()).toMatchObject({
        generation: 2,
        lost: false,
        pair: pairOf('a'),
      });
    });

    test('begins a newer generation with an import after a loss', async () => {
      const store = await filled();
      await store.save(saving('a', 1));
      await store.mark(mark('b', 2));
      await store.lose(2);
      expect(await store.import(importing(2, 'new'))).toMatchObject({
        generation: 3,
        lost: false,
        mark: null,
        pair: pairOf('new'),
      });
    });

    test('gives generation numbers that only grow', async () => {
      const store = await filled();
      const seen = [1];
      for (let round = 0; round < 5; round += 1) {
        const head = (await store.read())!.generation;
        if (round % 2 === 0) await store.save(saving(`s${round}`, head));
        else await store.import(importing(head, `i${round}`));
        await store.save(saving(`late${round}`, 1));
        seen.push((await store.read())!.generation);
      }
      expect(seen).toEqual(seen.toSorted((one, other) => one - other));
      expect(new Set(seen).size).toBe(seen.length);
    });
  });
}

function importing(after = 0, pair = 'link') {
  return { baseUrl: BASE_URL, pair: pairOf(pair), at: AT, after };
}

function mark(attempt: string, generation = 1, now = AT, until = now + 1000) {
  return { attempt, generation, now, until };
}

function saving(attempt: string, generation = 1) {
  return { attempt, generation, pair: pairOf(attempt), at: AT + 5 };
}
