import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, onTestFinished, test } from 'vitest';
import { startGatewayOverFake } from '../../support/gateway/over-fake.ts';

const MEGABYTE = 1024 * 1024;

test('the variables of callers are not kept with the plans of their operations', async () => {
  const gateway = await startGatewayOverFake({ persons: 0 });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const ask = (name: string) =>
    gateway.ask(`query ${name}($after: String) { persons(after: $after) { items { id } } }`, {
      after: `${name} ${'x'.repeat(MEGABYTE / 2)}`,
    });
  for (let i = 0; i < 10; i += 1) await ask(`Warm${i}`);
  const before = heap();
  for (let i = 0; i < 50; i += 1) {
    await ask(`Q${i}`);
    // Otherwise what the fake records of each request would be found instead.
    (gateway.upstream.received as unknown[]).length = 0;
  }
  expect(heap() - before).toBeLessThan(15 * MEGABYTE);
});

function heap(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}
