import { expect, onTestFinished, test } from 'vitest';
import { openSqliteStore } from '../../src/tokens/store/sqlite-store.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { startGateway } from '../support/gateway.ts';

const DAY = 86_400_000;
const ELSEWHERE = 'https://internal.example.test';

test('a store that turns into that of another service is told by an id, which the log explains', async () => {
  let now = Date.now();
  let broken = false;
  const service = await startSandbox({ now: () => now });
  const store = openSqliteStore(':memory:');
  const gateway = await startGateway(service, {
    store: {
      ...store,
      read: async () => {
        const stored = await store.read();
        return stored && broken ? { ...stored, baseUrl: ELSEWHERE } : stored;
      },
    },
  });
  onTestFinished(async () => {
    broken = false;
    await gateway[Symbol.asyncDispose]();
    await service.close();
  });
  const query = '{ persons(first: 1) { items { id } } }';
  await expect
    .poll(() => gateway.logged, { interval: 2, timeout: 10_000 })
    .toContainEqual(expect.objectContaining({ msg: 'access token rotated' }));
  expect((await gateway.ask(query)).errors).toBeUndefined();

  // The service refuses the expired token, and what would be newer is not for this service.
  broken = true;
  now += 2 * DAY;
  const { data, errors } = await gateway.ask(query);
  expect(data).toBeNull();
  expect(errors).toEqual([
    {
      message: expect.stringContaining('Tell its operator this id: '),
      locations: expect.any(Array),
      path: ['persons'],
      extensions: { code: 'INTERNAL_SERVER_ERROR', id: expect.any(String) },
    },
  ]);
  const { id } = errors![0]!.extensions as { id: string };
  expect(errors![0]!.message).toContain(id);
  expect(JSON.stringify(errors)).not.toContain(ELSEWHERE);
  const logged = gateway.logged.filter(({ errorId }) => errorId === id);
  expect(logged).toMatchObject([
    { level: 50, msg: 'unexpected error', err: { message: expect.stringContaining(ELSEWHERE) } },
  ]);

  broken = false;
  expect((await gateway.fetch('/ready')).status).toBe(200);
  expect((await gateway.ask(query)).errors).toBeUndefined();
});
