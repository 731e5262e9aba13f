import { resolve } from 'node:path';
import { setTimeout as pass } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createSealer } from '../../src/tokens/seal.ts';
import { openSqliteStore } from '../../src/tokens/sqlite.ts';
import { startService, type Reply } from '../service/service.ts';
import { honest, json, text } from '../support/imitations/scripted.ts';
import { cut, cutInBody, silence } from '../support/imitations/hostile-sockets.ts';
import { bundled } from '../support/processes/bundled.ts';
import { served, startProcess } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import type { Held } from './held.ts';
import { startMixedLoad } from './mixed-load.ts';

const ROUNDS = 16;
const REQUESTS_PER_ROUND = 500;
const CALLERS = 24;
/** The rounds before caches are full and code is compiled. */
const WARM_UP = 6;
/** The longest time that the gateway waits for the service; what callers left behind has ended then. */
const TIMEOUT_MS = 1_000;
/** Growth by more than a share of the first samples, and by more than noise, is too much. */
const MAX_GROWTH = { share: 0.15, least: { heap: 4 * 1024 * 1024, sockets: 8, timers: 8 } };

/** Faults by the number of the request, modulo 500. Other requests get honest answers. */
const FAULTS: Readonly<Record<number, Reply>> = {
  7: cut,
  23: text('<html>', 503),
  41: cutInBody,
  59: json({}, 429, { 'retry-after': '0' }),
  77: text('<html>'),
  499: silence,
};

test('a gateway under load over a line with faults does not grow, answers /health, and keeps the newest pair', async () => {
  await using upstream = await startService({
    persons: 137,
    expiresIn: 120,
    // An access token that was replaced serves no caller.
    revokeOnRefresh: true,
  });
  // The gateway sees a shorter life, and refreshes every six seconds.
  upstream.tokenAnswers.always((pair) => ({
    status: 200,
    body: JSON.stringify({ ...(JSON.parse(pair) as object), expires_in: 9 }),
  }));
  let asked = 0;
  upstream.answer((...exchange) => {
    asked += 1;
    return (FAULTS[asked % 500] ?? FAULTS[asked % 100] ?? honest)(...exchange);
  });
  using folder = temporaryFolder();
  const path = folder.file('tokens.db');
  const gateway = await served(
    startProcess(
      [
        '--expose-gc',
        '--max-old-space-size=512',
        '--import',
        resolve('test/soak/held.ts'),
        await bundled('src/process.ts'),
      ],
      {
        env: {
          RECRUITING_URL: upstream.url,
          TOKEN_LINK: upstream.tokenLink,
          TOKEN_STORE: `sqlite:${path}`,
          ALLOW_ANONYMOUS: 'true',
          UPSTREAM_TIMEOUT_MS: String(TIMEOUT_MS),
          LOG_LEVEL: 'error',
          // All of the load comes from one address, and has to be served.
          PAGES_PER_MINUTE: '0',
        },
      },
    ),
  );
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const load = startMixedLoad(new URL(gateway.url).origin, CALLERS);
  const samples: Held[] = [];
  for (let round = 1; round <= ROUNDS; round += 1) {
    const { outcomes } = load;
    await Promise.all([load.run(REQUESTS_PER_ROUND), expectHealthy(gateway.url)]);
    await pass(2 * TIMEOUT_MS);
    gateway.signal('SIGUSR2');
    const [, held] = await gateway.printed(new RegExp(`HELD ${round} (.*)\n`));
    samples.push(JSON.parse(held!) as Held);
    for (const [name, { example }] of outcomes) {
      if (/^broken|INTERNAL|UNAUTHORIZED|nothing/.test(name)) expect.fail(`${name}: ${example}`);
    }
  }
  await load.close();
  expect(await gateway.stop()).toMatchObject({ code: 0, stderr: '' });

  for (const what of ['heap', 'sockets', 'timers'] as const) {
    const settled = samples.slice(WARM_UP).map((sample) => sample[what]);
    const [first, last] = [average(settled.slice(0, 5)), average(settled.slice(-5))];
    const most = first + Math.max(MAX_GROWTH.least[what], MAX_GROWTH.share * first);
    expect(last, `${what}: ${settled.join(', ')}`).toBeLessThan(most);
  }
  const outcomes = upstream.exchanges.map(({ outcome }) => outcome);
  expect(outcomes.length).toBeGreaterThan(5);
  expect(new Set(outcomes)).toEqual(new Set(['answered']));
  const store = openSqliteStore(path, createSealer([]), { readOnly: true });
  const { refreshToken } = (await store.read()).state!.pair;
  await store.close();
  const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refreshToken });
  expect((await fetch(`${upstream.url}/oauth/token`, { method: 'POST', body })).status).toBe(200);
}, 600_000);

/** On new connections, as probes are. */
async function expectHealthy(url: string): Promise<void> {
  for (let probe = 0; probe < 10; probe += 1) {
    const signal = AbortSignal.timeout(5_000);
    const headers = { connection: 'close' };
    const { status } = await fetch(new URL('/health', url), { headers, signal });
    expect(status).toBe(200);
    await pass(100);
  }
}

function average(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}
