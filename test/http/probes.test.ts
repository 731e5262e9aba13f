import { expect, onTestFinished, test } from 'vitest';
import { importPair } from '../../src/tokens/state.ts';
import { startService } from '../service/service.ts';
import { codesOf } from '../support/gateway/codes.ts';
import { startGateway } from '../support/gateway/gateway.ts';
import { memoryStore } from '../support/gateway/stores.ts';
import { pairOf } from '../tokens/values.ts';

type Stored =
  'nothing' | 'a token link' | 'a valid pair' | { refusals: number } | { lost: boolean };

/** A gateway whose store has this, in front of a service. */
async function startWith(stored: Stored) {
  const service = await startService();
  onTestFinished(() => service.close());
  const store = memoryStore();
  if (stored !== 'nothing' && stored !== 'a token link') {
    const trouble = typeof stored === 'object' ? stored : {};
    const pair = pairOf('1');
    const set = importPair({ pair, service: service.url, by: 'office/1', replace: false });
    await store.update((_state, now) => ({
      next: { ...set(null, now).next!, ...trouble },
      result: undefined,
    }));
  }
  const { url, tokenLink } = service;
  const withLink = stored === 'a token link' ? { tokenLink } : {};
  const gateway = await startGateway({ url, ...withLink }, { store });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return { gateway, service };
}

const QUERY = '{ persons { items { id } } }';

test.each<[string, Stored, ready: boolean, code?: string]>([
  ['503 until a token set is present, without the reason', 'nothing', false, 'TOKENS_MISSING'],
  ['200 once a token set is present', 'a token link', true],
  ['200 with a token set that is refused', { refusals: 1 }, true, 'UPSTREAM_UNAUTHORIZED'],
  ['200 with a token set that is lost', { lost: true }, true, 'TOKENS_LOST'],
])('/ready replies %s, and the service is not asked', async (_, stored, ready, code) => {
  const { gateway, service } = await startWith(stored);
  expect(codesOf(await gateway.ask(QUERY))).toEqual(code === undefined ? [] : [code]);
  const before = JSON.stringify(service.stats);
  for (const [path, status, body] of [
    ['/ready', ready ? 200 : 503, JSON.stringify({ ready })],
    ['/ready?from=monitor', ready ? 200 : 503, JSON.stringify({ ready })],
    ['/health', 200, ''],
  ] as const) {
    const response = await gateway.fetch(path);
    expect([response.status, await response.text()]).toEqual([status, body]);
    if (body !== '') expect(response.headers.get('cache-control')).toBe('no-store');
  }
  expect(JSON.stringify(service.stats)).toBe(before);
});

test('/ready replies 200 at once if the store has a token set, even if the service is down', async () => {
  const { gateway, service } = await startWith('a valid pair');
  await service.close();
  expect((await gateway.fetch('/ready')).status).toBe(200);
});
