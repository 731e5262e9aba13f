/** Tokens that another process saved while this gateway runs. */
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { TokenStore } from '../../src/tokens/store/token-store.ts';
import { MINUTE } from '../support/random/manual-clock.ts';
import { startKept, type Kept } from '../support/tokens/kept.ts';
import {
  codesOf,
  pairOf,
  PERSON,
  reply,
  startScripted,
  watchStore,
} from '../support/tokens/tokens.ts';

test('a gateway whose tokens were lost logs that an import of another process made them available', async () => {
  const service = await startScripted();
  const kept = await startKept(service);
  await kept.clock.asleep();
  await kept.ask(PERSON);
  service.expire();
  service.tokenAnswers.every(1, reply(400, { error: 'invalid_grant' }));
  expect(codesOf(await kept.ask(PERSON))).toEqual(['TOKENS_LOST']);
  await importElsewhere(kept.store, service.url);
  await kept.clock.pass(MINUTE);
  expect(newsIn(kept)).toEqual([
    {
      level: 30,
      generation: 3,
      msg: 'the tokens are available again: newer ones were taken over from the token store',
    },
  ]);
});

test('a gateway without tokens logs that an import of another process made them available', async () => {
  const service = await startScripted();
  const kept = await startKept({ url: service.url });
  await kept.clock.asleep();
  await importElsewhere(kept.store, service.url);
  await kept.clock.pass(MINUTE);
  expect(newsIn(kept)).toEqual([
    { level: 30, generation: 1, msg: 'tokens were taken over from the token store' },
  ]);
});

test('a gateway logs the generation that another process refreshed the tokens to, and nothing like it for its own refresh', async () => {
  const service = await startScripted();
  const kept = await startKept(service);
  await kept.clock.asleep();
  expect(newsIn(kept)).toEqual([]);
  await refreshElsewhere(kept.store, kept.clock.now());
  await kept.clock.pass(MINUTE);
  expect(newsIn(kept)).toEqual([
    { level: 30, generation: 3, msg: 'newer tokens were taken over from the token store' },
  ]);
});

test('a gateway logs that it may refresh again when a move to another store is taken back', async () => {
  const service = await startScripted();
  const kept = await startKept(service, { store: watchStore() });
  await kept.clock.asleep();
  const to = 'postgres://elsewhere';
  await kept.store.moveOut({ to, replica: 'test' });
  await kept.clock.pass(MINUTE);
  expect(kept.logged).toContainEqual(expect.objectContaining({ trouble: 'moved' }));
  await kept.store.moveBack(to);
  await kept.clock.pass(MINUTE);
  expect(kept.logged.at(-1)).toMatchObject({
    level: 30,
    generation: 2,
    msg: 'the move to another store was taken back: the tokens can be refreshed again',
  });
});

function newsIn({ logged }: Kept) {
  return logged
    .filter(({ msg }) => /taken over/.test(String(msg)))
    .map(({ level, generation, msg }) => ({ level, generation, msg }));
}

async function importElsewhere(store: TokenStore, baseUrl: string): Promise<void> {
  const after = await store.read();
  await store.import({ baseUrl, pair: pairOf('imported'), replica: 'test', after });
}

async function refreshElsewhere(store: TokenStore, at: number): Promise<void> {
  const { set, generation } = (await store.read())!;
  const attempt = randomUUID();
  await store.claim({ set, generation, attempt, lifeMs: 150_000, replica: 'test' });
  const pair = pairOf('refreshed');
  await store.save({ set, generation, attempt, pair, outcome: 'rotated', latencyMs: 1, at });
}
