import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { refreshedOnce } from '../support/gateway/over-service.ts';
import { startGateway } from '../support/gateway/gateway.ts';
import { startService } from '../service/service.ts';
import { honest, refusal } from '../service/replies.ts';

const REQUESTS = 120;
const LATE_MS = 600;

test('no request fails and no alarm is raised if the service knows a new access token late, and the old one no longer', async () => {
  const upstream = await startService({ revokeOnRefresh: true });
  const gateway = await startGateway(upstream);
  onTestFinished(async () => {
    await gateway[Symbol.asyncDispose]();
    await upstream[Symbol.asyncDispose]();
  });
  await refreshedOnce(gateway.store);
  const { state } = await gateway.store.read();
  const knownFrom = performance.now() + LATE_MS;
  upstream.answer((response, received, sandbox) => {
    const isKnown = received.token !== state!.pair.accessToken || performance.now() >= knownFrom;
    return (isKnown ? honest : refusal('token_unknown'))(response, received, sandbox);
  });
  const answers = await Promise.all(
    Array.from({ length: REQUESTS }, async (_, index) => {
      await delay(index * 8);
      return gateway.ask('query ($first: Int) { persons(first: $first) { items { id } } }', {
        first: index + 1,
      });
    }),
  );
  expect(answers.flatMap(({ errors = [] }) => errors)).toEqual([]);
  expect(upstream.stats.requests.oauthToken).toBe(1);
  expect(await gateway.gateway.metrics.text()).toContain('{trouble="unauthorized"} 0');
  expect(gateway.logged.filter(({ level }) => Number(level) > 30)).toEqual([]);
});
