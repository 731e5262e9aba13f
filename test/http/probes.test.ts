import { expect, onTestFinished, test } from 'vitest';
import { startService } from '../service/service.ts';
import { startGateway } from '../support/gateway/gateway.ts';
import { memoryStore } from '../support/gateway/stores.ts';

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
