import { expect, test } from 'vitest';
import { honest, refusal } from '../service/replies.ts';
import type { Reply, Service } from '../service/service.ts';
import { codesOf } from '../support/gateway/codes.ts';
import { startGateway, type TestGateway } from '../support/gateway/gateway.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { memoryStore } from '../support/gateway/stores.ts';

async function expectReady(is: boolean, { fetch }: TestGateway, service: Service) {
  const counts = () => [service.received.length, service.otherAgents.length];
  const before = counts();
  for (const [path, status, body] of [
    ['/ready', is ? 200 : 503, JSON.stringify({ ready: is })],
    ['/ready?from=monitor', is ? 200 : 503, JSON.stringify({ ready: is })],
    ['/health', 200, ''],
  ] as const) {
    const response = await fetch(path);
    expect([response.status, await response.text()]).toEqual([status, body]);
    if (body !== '') expect(response.headers.get('cache-control')).toBe('no-store');
  }
  expect(counts()).toEqual(before);
}

test.each<[string, object | null, Reply, code?: string]>([
  ['503 until a token set is present, without the reason', null, honest, 'TOKENS_MISSING'],
  ['200 once a token set is present', {}, honest],
  ['200 with a token set that is refused', {}, refusal('blocked', 403), 'UPSTREAM_UNAUTHORIZED'],
  ['200 with a token set that is lost', { lost: true }, refusal('token_expired'), 'TOKENS_LOST'],
])('/ready replies %s, and the service is not asked', async (_, change, reply, code) => {
  await using world = await startGatewayOverService();
  const { service } = world;
  const store = change ? world.store : memoryStore();
  if (change) {
    await store.update((state) => ({ next: { ...state!, ...change }, result: undefined }));
  }
  await using gateway = await startGateway({ url: service.url }, { store });
  service.answer(reply);
  const answer = await gateway.ask('{ persons { items { id } } }');
  expect(codesOf(answer)).toEqual(code === undefined ? [] : [code]);
  await expectReady(change !== null, gateway, service);
});

test('/ready replies 200 at once if the store has a token set, even if the service is down', async () => {
  await using world = await startGatewayOverService();
  await world.service.close();
  await using gateway = await startGateway(world.service, { store: world.store });
  expect((await gateway.fetch('/ready')).status).toBe(200);
});
