import { expect, onTestFinished, test } from 'vitest';
import { importPair } from '../../src/tokens/state.ts';
import { startService } from '../service/service.ts';
import { codesOf } from '../support/gateway/codes.ts';
import { startGateway } from '../support/gateway/gateway.ts';
import { memoryStore } from '../support/gateway/stores.ts';
import { pairOf } from '../tokens/values.ts';

async function start(withLink = true, store = memoryStore()) {
  const service = await startService();
  const { url, tokenLink } = service;
  const gateway = await startGateway({ url, ...(withLink && { tokenLink }) }, { store });
  onTestFinished(async () => {
    await gateway[Symbol.asyncDispose]();
    await service.close();
  });
  return { gateway, service };
}

test('/ready replies 503 until a token set is present, without the reason', async () => {
  const { gateway, service } = await start(false);
  const before = JSON.stringify(service.stats);
  expect((await gateway.fetch('/health')).status).toBe(200);
  const response = await gateway.fetch('/ready');
  expect([response.status, await response.json()]).toEqual([503, { ready: false }]);
  expect(JSON.stringify(service.stats)).toBe(before);
});

test('/ready replies 200 once a token set is present, without a request to the service', async () => {
  const { gateway, service } = await start();
  await gateway.ask('{ persons { items { id } } }');
  const before = JSON.stringify(service.stats);
  for (const [path, body] of [
    ['/ready', '{"ready":true}'],
    ['/ready?from=monitor', '{"ready":true}'],
    ['/health', ''],
  ] as const) {
    const response = await gateway.fetch(path);
    expect([response.status, await response.text()]).toEqual([200, body]);
  }
  expect(JSON.stringify(service.stats)).toBe(before);
});

test.each([
  ['refused', { refusals: 1 }, 'UPSTREAM_UNAUTHORIZED'],
  ['lost', { lost: true }, 'TOKENS_LOST'],
])(
  '/ready replies 200 with a token set that is %s: each query returns the error',
  async (_, trouble, code) => {
    const service = await startService();
    onTestFinished(() => service.close());
    const store = memoryStore();
    const pair = pairOf('1');
    const set = importPair({ pair, service: service.url, by: 'office/1', replace: false });
    await store.update((_state, now) => ({
      next: { ...set(null, now).next!, ...trouble },
      result: undefined,
    }));
    const gateway = await startGateway({ url: service.url }, { store });
    onTestFinished(() => gateway[Symbol.asyncDispose]());
    expect((await gateway.fetch('/ready')).status).toBe(200);
    expect(codesOf(await gateway.ask('{ persons { items { id } } }'))).toEqual([code]);
  },
);

test('/ready replies 200 at once if the store has a token set, even if the service is down', async () => {
  const store = memoryStore();
  const { gateway, service } = await start(true, store);
  await gateway.ask('{ persons { items { id } } }');
  await gateway.gateway.close();
  await service.close();
  const again = await startGateway({ url: service.url }, { store });
  onTestFinished(() => again.gateway.close());
  expect((await again.fetch('/ready')).status).toBe(200);
});
