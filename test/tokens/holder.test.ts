import { rmSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { emergencyIn, type Emergency } from '../../src/tokens/emergency.ts';
import { PLAIN_WORDING } from '../../src/tokens/health.ts';
import { TokenHolder, type HolderParts } from '../../src/tokens/holder.ts';
import { createSealer } from '../../src/tokens/seal.ts';
import type { Exchange } from '../../src/tokens/service.ts';
import { importPair, successor } from '../../src/tokens/state.ts';
import { StoreUnavailable, type TokenStore } from '../../src/tokens/store.ts';
import { recordingLog } from '../support/gateway/recording-log.ts';
import { memoryStore } from '../support/gateway/stores.ts';
import { quickFolder } from '../support/quick-folder.ts';
import { pairOf, saveOf, SERVICE } from './values.ts';

test('a pair that arrives after another store took the place of its own stays in its emergency file', async () => {
  const [own, other] = await Promise.all([storeWith('own'), storeWith('other')]);
  const store = replaceable(own);
  const { holder, emergency, logged } = holderOf(store, async () => {
    store.replaceBy(other);
    return { kind: 'granted', pair: pairOf('next') };
  });
  await holder.look();
  await holder.exchange();
  const [file, ...more] = emergency.read();
  expect(file).toMatchObject({ received: { pair: pairOf('next'), generation: 2 } });
  expect(more).toEqual([]);
  expect(logged).toMatchObject([{ level: 50, path: file!.path }]);
});

test('a pair that could be written neither to the store nor to a file is written to whichever works first', async () => {
  const store = await storeWith('1');
  const isFull = { store: false, folder: true };
  const { holder, emergency } = holderOf(
    {
      ...store,
      update: async (rule) => {
        if (isFull.store) throw new StoreUnavailable('no space left');
        return store.update(rule);
      },
    },
    async () => {
      isFull.store = true;
      return { kind: 'granted', pair: pairOf('next') };
    },
    {},
    isFull,
  );
  await holder.look();
  await holder.exchange();
  expect({ files: emergency.read(), ...holder.facts }).toMatchObject({
    files: [],
    isUnsaved: true,
  });
  isFull.folder = false;
  await holder.look().catch(() => {});
  expect(emergency.read()).toMatchObject([{ received: { pair: pairOf('next') } }]);
  isFull.store = false;
  await holder.look();
  expect({ files: emergency.read(), ...holder.facts }).toMatchObject({
    files: [],
    isUnsaved: false,
  });
  expect((await store.read()).state).toMatchObject({ pair: pairOf('next') });
});

test('the emergency files of other stores stay, and the own one is removed once its pair is saved', async () => {
  const [own, other] = await Promise.all([storeWith('own'), storeWith('other')]);
  const foreign = await storeWith('foreign', 'https://other.example');
  const { holder, emergency } = holderOf(own);
  const waiting = await Promise.all(
    [own, other, foreign].map(async (store) => {
      const next = successor((await store.read()).state!, pairOf('next'));
      emergency.put(next, Date.now());
      return emergency.pathOf(next);
    }),
  );
  expect(await holder.look()).toMatchObject({ generation: 2, pair: pairOf('next') });
  const left = emergency.read().map(({ path }) => path);
  expect(left.toSorted()).toEqual(waiting.slice(1).toSorted());
});

test('the pair of an emergency file is saved once, and not put back as well', async () => {
  const store = await storeWith('own');
  const { holder, emergency, logged } = holderOf(store);
  emergency.put(successor((await store.read()).state!, pairOf('next')), Date.now());
  await holder.look();
  expect(logged.map(({ msg }) => msg)).toEqual(['the pair of an emergency file was saved']);
});

test('a look while the pair of an exchange is being saved leaves it to the exchange, without a warning', async () => {
  const store = await storeWith('own');
  let looks = 0;
  const { holder, emergency, logged } = holderOf(
    {
      ...store,
      update: async (rule) => {
        if (emergency.read().length > 0 && looks === 0) {
          looks += 1;
          await holder.look();
        }
        return store.update(rule);
      },
    },
    async () => ({ kind: 'granted', pair: pairOf('next') }),
  );
  await holder.look();
  await holder.exchange();
  expect({ looks, files: emergency.read() }).toEqual({ looks: 1, files: [] });
  expect(logged.map(({ msg }) => msg)).toEqual(['access token refreshed']);
  expect((await store.read()).state).toMatchObject({ generation: 2, pair: pairOf('next') });
});

test('a look that has read the store before this process saved the next pair puts nothing back', async () => {
  const store = await storeWith('own');
  const { promise: isSaved, resolve: saved } = Promise.withResolvers<void>();
  let reads = 0;
  const { holder, logged } = holderOf(
    {
      ...store,
      read: async () => {
        const reading = await store.read();
        reads += 1;
        if (reads === 2) await isSaved;
        return reading;
      },
    },
    async () => ({ kind: 'granted', pair: pairOf('next') }),
  );
  await holder.look();
  const looked = holder.look();
  await holder.exchange();
  saved();
  expect(await looked).toMatchObject({ generation: 2, pair: pairOf('next') });
  expect(logged.map(({ msg }) => msg)).toEqual(['access token refreshed']);
});

test('a store that becomes the store of another service is not changed, and its tokens are not used', async () => {
  const [own, foreign] = await Promise.all([
    storeWith('own'),
    storeWith('foreign', 'https://other.example'),
  ]);
  const before = await foreign.read();
  const store = replaceable(own);
  const { holder, sent } = holderOf(store);
  await holder.look();
  store.replaceBy(foreign);
  await expect(holder.look()).rejects.toThrow(/belongs to https:\/\/other.*Correct `endpoint`/);
  await expect(holder.exchange()).rejects.toThrow(/belongs to https:\/\/other.*Correct `endpoint`/);
  expect(sent).toEqual([]);
  expect((await foreign.read()).state).toEqual(before.state);
  expect(holder.state).toMatchObject({ service: SERVICE, pair: pairOf('own') });
});

test('a process that is refused before the winner has saved uses the pair of the winner, and records no refusal', async () => {
  const store = await storeWith('1');
  let elapsed = 0;
  const { holder } = holderOf(store, async () => ({ kind: 'invalid-grant' }), {
    elapsed: () => elapsed,
    sleep: async (ms: number) => {
      elapsed += ms;
      const { state } = await store.read();
      if (elapsed > 1_500) await store.update(saveOf(state!, 'of the winner'));
    },
  });
  await holder.look();
  expect(await holder.exchange()).toMatchObject({ pair: pairOf('of the winner'), refusals: 0 });
  const { state } = await store.read();
  expect(state!.events.map(({ what }) => what)).toEqual(['saved', 'imported']);
});

test('an answer without a new refresh token is used, and raises an alarm', async () => {
  const pair = pairOf('next', { refreshToken: 'refresh-1' });
  const flaw = 'no new refresh token';
  const { holder, logged } = holderOf(await storeWith('1'), async () => ({
    kind: 'granted',
    pair,
    flaw,
  }));
  await holder.look();
  expect(await holder.exchange()).toMatchObject({ generation: 2, pair });
  expect(logged.filter(({ level }) => Number(level) >= 50)).toMatchObject([{ flaw }]);
});

async function storeWith(name: string, service = SERVICE) {
  const store = memoryStore();
  onTestFinished(() => store.close());
  await store.update(importPair({ pair: pairOf(name), service, by: 'test/1', replace: false }));
  return store;
}

/** A store in whose place another one can be put. */
function replaceable(first: TokenStore) {
  let current = first;
  return {
    ...first,
    read: () => current.read(),
    update: ((rule) => current.update(rule)) as TokenStore['update'],
    replaceBy: (next: TokenStore) => void (current = next),
  };
}

function holderOf(
  store: TokenStore,
  answer: () => Promise<Exchange> = async () => ({ kind: 'granted', pair: pairOf('next') }),
  clock: Partial<HolderParts['clock']> = {},
  isFull = { folder: false },
) {
  const folder = quickFolder();
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const files = emergencyIn(folder, createSealer([]));
  const emergency: Emergency = {
    ...files,
    put: (received, at) => !isFull.folder && files.put(received, at),
  };
  const { log, logged } = recordingLog();
  const sent: string[] = [];
  const holder = new TokenHolder({
    store,
    service: {
      exchange: ({ refreshToken }) => {
        sent.push(refreshToken);
        return answer();
      },
      check: async () => ({ kind: 'works' }),
    },
    emergency,
    serviceUrl: SERVICE,
    by: 'test/1',
    wording: PLAIN_WORDING,
    clock: { ...systemClock, ...clock },
    log,
  });
  return { holder, emergency, logged, sent };
}
