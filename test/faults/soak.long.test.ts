import pino from 'pino';
import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { readConfig } from '../../src/config.ts';
import { createGateway } from '../../src/gateway.ts';
import { listen } from '../../src/http/listen.ts';
import { startService } from '../service/service.ts';
import { lookAtHeld } from '../soak/held.ts';
import { memoryStore } from '../support/gateway/stores.ts';
import { startFaultyLine } from '../support/imitations/hostile-sockets.ts';
import { flood } from '../support/processes/floods.ts';
import { startMixedLoad } from '../support/processes/mixed-load.ts';

// `npm run test:nightly` does the same in separate processes, with ten thousand requests.
test('requests of all kinds over a faulty line leave no sockets, listeners or memory behind', async () => {
  const { origin, exchanges } = await start();
  // All documents are known after the first run, so that the memory for them no longer grows.
  const load = startMixedLoad(origin, 12, 100);
  onTestFinished(() => load.close());
  // Floods of the same texts, which are kept once.
  await Promise.all([load.run(200), flood(origin, FLOOD)]);
  const before = await settled();
  const [flooded] = await Promise.all([flood(origin, FLOOD), load.run(400)]);
  const { status } = await fetch(`${origin}/health`);
  const after = await settled();

  expect(status).toBe(200);
  // Half of the stalled requests have too many headers.
  expect(flooded.get('431')).toBe(FLOOD.stalled / 2);
  expect(flooded.get('200')).toBeGreaterThan(FLOOD.invalid);

  expect(after.warnings.filter((text) => /leak|listeners/i.test(text))).toEqual([]);
  // As many as callers and slots may have, at both ends of each connection; a leak would be hundreds.
  expect(after.sockets - before.sockets).toBeLessThan(50);
  expect(after.timers - before.timers).toBeLessThan(50);
  // 10 kB for each request.
  expect(after.heap - before.heap).toBeLessThan(4_000_000);
  expect(load.outcomes.get('answered')).toBeGreaterThan(250);
  expect([...load.outcomes.keys()].filter((name) => /^broken|INTERNAL|nothing/.test(name))).toEqual(
    [],
  );
  expect(exchanges()).toBeGreaterThan(0);
}, 120_000);

const FLOOD = { invalid: 100, large: 8, pipelined: 200, stalled: 40 };

/** Waits a moment, until the resources of abandoned requests are released. */
async function settled() {
  let held = lookAtHeld();
  for (;;) {
    await new Promise((passed) => setTimeout(passed, 200));
    const next = lookAtHeld();
    if (next.sockets >= held.sockets && next.timers >= held.timers) return next;
    held = next;
  }
}

async function start() {
  const ends = new AsyncDisposableStack();
  onTestFinished(() => ends.disposeAsync());
  const sandbox = ends.adopt(await startService({ expiresIn: 3 }), (it) => it.close());
  const line = ends.use(
    await startFaultyLine(sandbox, { outageEvery: 600, outageMs: 100, hangMs: 100 }),
  );
  const store = ends.adopt(memoryStore(), (it) => it.close());
  const gateway = ends.adopt(
    await createGateway({
      config: {
        ...readConfig({}, () => ''),
        recruitingUrl: line.url,
        tokenLink: line.tokenLink,
        upstreamTimeoutMs: 10_000,
        pagesPerMinute: 0,
      },
      snapshot: readFileSync('schema/upstream.graphql', 'utf8'),
      store,
      // Requests are repeated after a short wait.
      clock: {
        ...systemClock,
        sleep: (ms, signal) => systemClock.sleep(ms < 1_500 ? ms / 20 : ms, signal),
      },
      log: pino({ level: 'silent' }),
    }),
    (it) => it.close(),
  );
  const server = ends.adopt(await listen(gateway.handler, { host: '127.0.0.1', port: 0 }), (it) =>
    it.close(),
  );
  return { origin: server.url, exchanges: () => sandbox.exchanges.length };
}
