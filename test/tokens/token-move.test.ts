/** A move whose outcome the command does not learn. */
import { expect, onTestFinished, test } from 'vitest';
import { openSqliteStore } from '../../src/tokens/store/sqlite/sqlite-store.ts';
import { StoreUnavailableError, type TokenStore } from '../../src/tokens/store/token-store.ts';
import { moveSet } from '../../src/tokens/token-move.ts';
import { timedDatabase } from '../support/tokens/timed-store.ts';
import { pairOf } from '../support/tokens/tokens.ts';

test.each([true, false])(
  'a set whose arrival is unknown (it arrived: %s) has no second owner, and the command finishes the move',
  async (arrives) => {
    const source = await filled();
    const target = timedDatabase(Date.now).open();
    const goesDown: TokenStore = {
      ...target,
      moveIn: async (moved) => {
        if (arrives) await target.moveIn(moved);
        throw new StoreUnavailableError('Connection terminated unexpectedly');
      },
    };
    const stored = (await source.read())!;
    await expect(moveSet(source, goesDown, stored, { replica: 'test' })).rejects.toThrow(
      /whether postgres:.* has it is unknown .*Run the command again/,
    );
    const after = (await source.read())!;
    expect(after).toMatchObject({ movedTo: target.description });
    await moveSet(source, target, after, { replica: 'test' });
    expect(await target.read()).toMatchObject({ pair: stored.pair, movedTo: null });
  },
);

test('a set that the target certainly did not take stays in use in the source', async () => {
  const source = await filled();
  const target = timedDatabase(Date.now).open();
  const isFull: TokenStore = {
    ...target,
    moveIn: () => Promise.reject(new Error('database or disk is full')),
  };
  const stored = (await source.read())!;
  await expect(moveSet(source, isFull, stored, { replica: 'test' })).rejects.toThrow(
    'disk is full',
  );
  expect(await source.read()).toMatchObject({ movedTo: null, pair: stored.pair });
});

test('a set that is older than a pair that is known is not moved', async () => {
  const source = await filled();
  const target = timedDatabase(Date.now).open();
  const stored = (await source.read())!;
  const newest = stored.generation + 1;
  await expect(moveSet(source, target, stored, { replica: 'test', newest })).rejects.toThrow(
    /replaced by an older copy.*nothing was moved.*tokens recover/,
  );
  expect(await source.read()).toMatchObject({ movedTo: null, pair: stored.pair });
  expect(await target.read()).toBeNull();
});

async function filled(): Promise<TokenStore> {
  const source = openSqliteStore(':memory:');
  onTestFinished(() => source.close());
  const pair = pairOf('moved');
  const imported = { baseUrl: 'https://recruiting.test', pair, replica: 'test', after: null };
  await source.import(imported);
  return source;
}
