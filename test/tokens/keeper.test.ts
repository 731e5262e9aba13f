import { rmSync } from 'node:fs';
import pino from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { emergencyIn } from '../../src/tokens/emergency.ts';
import { createTokenKeeper } from '../../src/tokens/keeper.ts';
import { createSealer } from '../../src/tokens/seal.ts';
import type { State } from '../../src/tokens/state.ts';
import type { TokenStore } from '../../src/tokens/store.ts';
import { memoryStore } from '../support/gateway/stores.ts';
import { quickFolder } from '../support/quick-folder.ts';
import { claimOf, importOf, pairOf, saveOf, SERVICE } from './values.ts';

test('a pair that another process saves while this one reports an expired token is used, and not exchanged as well', async () => {
  const store = await storeWith('1');
  await store.update(claimOf('of another process', 1));
  let others = async () => {
    await store.update((state, now) => saveOf(state as State, '2')(state, now));
    others = async () => {};
  };
  const { keeper, exchanges } = await keeperOf({
    ...store,
    update: async (rule) => {
      await others();
      return store.update(rule);
    },
  });
  const refused = await keeper.token();
  const next = await keeper.afterRefusal(refused, 'token_expired', 0);
  expect(next).toEqual({ value: 'access-2', generation: 2 });
  expect(exchanges).toEqual([]);
});

test('a stop during a refresh waits for its pair, and for nothing else', async () => {
  const store = await storeWith('1');
  const answer = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const { keeper } = await keeperOf(store, () => {
    asked.resolve();
    return answer.promise;
  });
  await asked.promise;
  const closed = keeper.close();
  answer.resolve();
  await closed;
  expect((await store.read()).state).toMatchObject({ generation: 2 });
}, 10_000);

async function storeWith(name: string): Promise<TokenStore> {
  const store = memoryStore();
  onTestFinished(() => store.close());
  await store.update(importOf(name));
  return store;
}

async function keeperOf(store: TokenStore, answering: () => Promise<void> = async () => {}) {
  const exchanges: string[] = [];
  const folder = quickFolder();
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const keeper = await createTokenKeeper({
    store,
    service: {
      exchange: async ({ refreshToken }) => {
        exchanges.push(refreshToken);
        await answering();
        return { kind: 'granted', pair: pairOf(`after ${refreshToken}`) };
      },
      check: async () => ({ kind: 'works' }),
    },
    emergency: emergencyIn(folder, createSealer([])),
    serviceUrl: SERVICE,
    by: 'test/1',
    clock: systemClock,
    log: pino({ level: 'silent' }),
  });
  onTestFinished(() => keeper.close());
  return { keeper, exchanges };
}
