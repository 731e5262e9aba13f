import { rmSync } from 'node:fs';
import pino from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { emergencyIn } from '../../src/tokens/emergency.ts';
import { TokenHolder } from '../../src/tokens/holder.ts';
import { createSealer } from '../../src/tokens/seal.ts';
import { importPair } from '../../src/tokens/state.ts';
import { memoryStore } from '../support/gateway/stores.ts';
import { quickFolder } from '../support/quick-folder.ts';
import { pairOf } from '../support/tokens/tokens.ts';

const SERVICE = 'https://service.example';

test('a pair that arrives after another store took the place of its own stays in its emergency file', async () => {
  const [own, other] = await Promise.all([storeWith('own'), storeWith('other')]);
  let current = own;
  const folder = quickFolder();
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const emergency = emergencyIn(folder, createSealer([]));
  const holder = new TokenHolder({
    store: { ...own, read: () => current.read(), update: (rule) => current.update(rule) },
    service: {
      exchange: async () => {
        current = other;
        return { kind: 'granted', pair: pairOf('next') };
      },
      check: async () => ({ kind: 'works' }),
    },
    emergency,
    serviceUrl: SERVICE,
    by: 'test/1',
    clock: systemClock,
    log: pino({ level: 'silent' }),
  });
  await holder.look();
  await holder.exchange();
  expect(emergency.read()).toMatchObject([{ received: { pair: pairOf('next'), generation: 2 } }]);
});

async function storeWith(name: string) {
  const store = memoryStore();
  onTestFinished(() => store.close());
  await store.update(
    importPair({ pair: pairOf(name), service: SERVICE, by: 'test/1', replace: false }),
  );
  return store;
}
