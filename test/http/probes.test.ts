import { expect, onTestFinished, test } from 'vitest';
import { startSandbox, type SandboxOptions } from '../../src/sandbox/sandbox.ts';
import { openSqliteStore } from '../../src/tokens/store/sqlite-store.ts';
import { startGateway } from '../support/gateway.ts';

const DAY = 86_400_000;

test('/health says yes from the start, with an empty body', async () => {
  const { gateway } = await start({ withLink: false });
  const response = await gateway.fetch('/health');
  expect(response.status).toBe(200);
  expect(await response.text()).toBe('');
});

test('/ready says no before a token set was ever present, and never why', async () => {
  const { gateway, service } = await start({ withLink: false });
  const before = JSON.stringify(service.stats);
  const response = await gateway.fetch('/ready');
  expect(response.status).toBe(503);
  expect(await response.text()).toBe('');
  expect(JSON.stringify(service.stats)).toBe(before);
});

test('/ready says yes once there is one, and asks the service nothing', async () => {
  const { gateway, service } = await start();
  await gateway.ask('{ persons { items { id } } }');
  const before = JSON.stringify(service.stats);
  for (const path of ['/ready', '/ready', '/health']) {
    const response = await gateway.fetch(path);
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('');
  }
  expect(JSON.stringify(service.stats)).toBe(before);
});

test('/ready still says yes when the tokens are lost, since each query says so itself', async () => {
  let now = Date.now();
  const { gateway } = await start({ options: { now: () => now } });
  expect((await gateway.ask('{ persons { items { id } } }')).errors).toBeUndefined();
  now += 200 * DAY;
  const { errors } = await gateway.ask('{ persons { items { id } } }');
  expect(errors).toMatchObject([{ extensions: { code: 'TOKENS_LOST' } }]);
  expect((await gateway.fetch('/ready')).status).toBe(200);
});

test('/ready still says yes when the service is gone', async () => {
  const { gateway, service } = await start();
  await gateway.ask('{ persons { items { id } } }');
  await service.close();
  expect((await gateway.fetch('/ready')).status).toBe(200);
});

test('/ready says yes at once on a store that has a set, with the service down', async () => {
  const store = openSqliteStore(':memory:');
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
  store = openSqliteStore(':memory:'),
}: {
  withLink?: boolean;
  options?: SandboxOptions;
  store?: ReturnType<typeof openSqliteStore>;
} = {}) {
  const service = await startSandbox(options);
  const { url, tokenLink } = service;
  const gateway = await startGateway({ url, ...(withLink && { tokenLink }) }, { store });
  onTestFinished(async () => {
    await gateway[Symbol.asyncDispose]();
    await service.close();
  });
  return { gateway, service };
}
