import { expect, onTestFinished, test } from 'vitest';
import { startService, type ServiceOptions } from '../service/service.ts';
import type { TokenStore } from '../../src/tokens/store.ts';
import { startGateway } from '../support/gateway/gateway.ts';
import { memoryStore } from '../support/gateway/stores.ts';

const DAY = 86_400_000;

test('/ready replies 503 until a token set is present, without the reason', async () => {
  const { gateway, service } = await start({ withLink: false });
  const before = JSON.stringify(service.stats);
  expect((await gateway.fetch('/health')).status).toBe(200);
  const response = await gateway.fetch('/ready');
  expect(response.status).toBe(503);
  expect(await response.json()).toEqual({ ready: false });
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
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(body);
  }
  expect(JSON.stringify(service.stats)).toBe(before);
});

test('/ready still replies 200 if the refresh token is refused, because each query returns that error', async () => {
  let now = Date.now();
  const { gateway } = await start({ options: { now: () => now } });
  expect((await gateway.ask('{ persons { items { id } } }')).errors).toBeUndefined();
  now += 200 * DAY;
  const { errors } = await gateway.ask('{ persons { items { id } } }');
  expect(errors).toMatchObject([{ extensions: { code: 'UPSTREAM_UNREACHABLE' } }]);
  expect((await gateway.fetch('/ready')).status).toBe(200);
});

test('/ready replies 200 at once if the store has a token set, even if the service is down', async () => {
  const store = memoryStore();
  const { gateway, service } = await start({ store });
  await gateway.ask('{ persons { items { id } } }');
  await gateway.gateway.close();
  await service.close();
  const again = await startGateway({ url: service.url }, { store });
  onTestFinished(() => again.gateway.close());
  expect((await again.fetch('/ready')).status).toBe(200);
});

async function start({
  withLink = true,
  options = {},
  store = memoryStore(),
}: {
  withLink?: boolean;
  options?: ServiceOptions;
  store?: TokenStore;
} = {}) {
  const service = await startService(options);
  const { url, tokenLink } = service;
  const gateway = await startGateway({ url, ...(withLink && { tokenLink }) }, { store });
  onTestFinished(async () => {
    await gateway[Symbol.asyncDispose]();
    await service.close();
  });
  return { gateway, service };
}
