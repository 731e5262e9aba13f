/** A move whose outcome the command does not learn. */
import { expect, test } from 'vitest';
import { openSqliteStore } from '../../src/tokens/store/sqlite/sqlite-store.ts';
import { StoreUnavailableError, type TokenStore } from '../../src/tokens/store/token-store.ts';
import { moveSet } from '../../src/tokens/token-move.ts';
import { timedDatabase } from '../support/tokens/timed-store.ts';
import { pairOf } from '../support/tokens/tokens.ts';

test.each([true, false])(
  'a set whose arrival is unknown (it arrived: %s) has no second owner, and the command finishes the move',
  async (arrives) => {
    const source = openSqliteStore(':memory:');
    const pair = pairOf('moved');
    const imported = { baseUrl: 'https://recruiting.test', pair, replica: 'test', after: null };
    await source.import(imported);
    const target = timedDatabase(Date.now).open();
    const goesDown: TokenStore = {
      ...target,
      moveIn: async (moved) => {
        if (arrives) await target.moveIn(moved);
        throw new StoreUnavailableError('Connection terminated unexpectedly');
      },
    };
    const stored = (await source.read())!;
    await expect(moveSet(source, goesDown, stored, 'test')).rejects.toThrow(
      /whether postgres:.* has it is unknown .*Run the command again/,
    );
    const after = (await source.read())!;
    expect(after).toMatchObject({ movedTo: target.description });
    await moveSet(source, target, after, 'test');
    expect(await target.read()).toMatchObject({ pair, movedTo: null });
  },
);
