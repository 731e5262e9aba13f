import { setTimeout as pass } from 'node:timers/promises';
import { Pool } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { cut, cutInBody, honest, json, silence, text } from '../service/replies.ts';
import { startService, type Reply } from '../service/service.ts';
import { settingsOver } from '../support/gateway/settings-over.ts';
import { bundled } from '../support/processes/bundled.ts';
import { served, startProcess } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROUNDS = 16;
const REQUESTS_PER_ROUND = 500;
const CALLERS = 24;
/** The rounds before caches are full and code is compiled. */
const WARM_UP = 6;
/** The longest time that the gateway waits for the service; what callers left behind has ended then. */
const TIMEOUT_MS = 1_000;
/** Growth by more than a share of the first samples, and by more than noise, is too much. */
const MAX_GROWTH = { share: 0.15, least: { heap: 4 * 1024 * 1024, sockets: 8, timers: 8 } };

/** Faults of the service by the number of the request, modulo 500. Other requests get honest answers. */
const FAULTS: Readonly<Record<number, Reply>> = {
  7: cut,
  23: text('<html>', 503),
  41: cutInBody,
  59: json({}, 429, { 'retry-after': '0' }),
  77: text('<html>'),
  499: silence,
};

/** What a gateway holds after a garbage collection: bytes, and numbers. */
type Held = Record<'heap' | 'sockets' | 'timers', number>;

/** Loaded into the gateway: it prints what it holds on SIGUSR2. */
const PRINTS_HELD = `data:text/javascript,${encodeURIComponent(`
  let looks = 0;
  process.on('SIGUSR2', () => {
    gc();
    gc();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    const count = (kind) => process.getActiveResourcesInfo().filter((name) => name.startsWith(kind)).length;
    const held = { heap: heapUsed + arrayBuffers, sockets: count('TCPSocket'), timers: count('Timeout') };
    console.log('HELD', (looks += 1), JSON.stringify(held));
  });`)}`;

const HEADERS = {
  'content-type': 'application/json',
  accept: 'multipart/mixed;deferSpec=20220824, application/json',
};
/** How many different documents there are of most kinds: the number of those that are kept is bounded. */
const LABELS = 2_000;

interface Asked {
  readonly query: string;
  readonly variables?: object;
  /** Ms after which the caller leaves. */
  readonly leaveAfter?: number;
}

/** What callers request, by the number of the request, modulo 25. Others read a page. */
const REQUESTS: readonly ((label: string, number: number) => Asked)[] = [
  (label) => ({ query: `{ allPersons { ${label}: id firstName } }` }),
  (label) => ({
    query: `{ personsConnection(first: 70) { edges { cursor node { ${label}: id } } } }`,
  }),
  (label) => ({
    query: `{ personsConnection(last: 5) { totalCount nodes { ${label}: id } } }`,
  }),
  // Each time another id, of which nothing may be kept.
  (label, number) => ({
    query: `query ($id: ID!) { person(id: $id) { ${label}: id } }`,
    variables: { id: String(number) },
  }),
  (label, number) => ({
    query: `{ persons(first: 5) { items { ${label}: id } } }`,
    leaveAfter: number % 7,
  }),
  (label, number) => ({ query: `{ allPersons { ${label}: id } }`, leaveAfter: number % 11 }),
  (label) => ({ query: `{ nobody { ${label} } }` }),
  (label) => ({ query: `{ allPersons @stream { ${label}: id } }` }),
];

test('a gateway under load over a line with faults does not grow', async () => {
  await using upstream = await startService({
    persons: 137,
    // The gateway refreshes every six seconds.
    expiresIn: 9,
    // An access token that was replaced serves no caller.
    revokeOnRefresh: true,
  });
  let asked = 0;
  upstream.answer((...exchange) => {
    asked += 1;
    return (FAULTS[asked % 500] ?? FAULTS[asked % 100] ?? honest)(...exchange);
  });
  using folder = temporaryFolder();
  const program = await bundled('src/process.ts');
  const gateway = await served(
    startProcess(['--expose-gc', '--max-old-space-size=512', '--import', PRINTS_HELD, program], {
      env: {
        ...settingsOver(upstream, folder),
        UPSTREAM_TIMEOUT_MS: String(TIMEOUT_MS),
        LOG_LEVEL: 'error',
        // All of the load comes from one address, and has to be served.
        PAGES_PER_MINUTE: '0',
      },
    }),
  );
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const pool = new Pool(new URL(gateway.url).origin, { connections: CALLERS, pipelining: 1 });
  const samples: Held[] = [];
  for (let round = 1; round <= ROUNDS; round += 1) {
    await sendRound(round, pool);
    await pass(2 * TIMEOUT_MS);
    gateway.signal('SIGUSR2');
    const [, sample] = await gateway.printed(new RegExp(`HELD ${round} (.*)\n`));
    samples.push(JSON.parse(sample!) as Held);
  }
  await pool.destroy();
  expect(await gateway.stop()).toMatchObject({ code: 0, stderr: '' });

  for (const what of ['heap', 'sockets', 'timers'] as const) {
    const settled = samples.slice(WARM_UP).map((sample) => sample[what]);
    const [first, last] = [average(settled.slice(0, 5)), average(settled.slice(-5))];
    const most = first + Math.max(MAX_GROWTH.least[what], MAX_GROWTH.share * first);
    expect(last, `${what}: ${settled.join(', ')}`).toBeLessThan(most);
  }
  const exchanges = upstream.exchanges.map(({ outcome }) => outcome);
  expect(exchanges.length).toBeGreaterThan(5);
  expect(new Set(exchanges)).toEqual(new Set(['answered']));
}, 600_000);

/** Callers who request everything, leave early and make mistakes. */
async function sendRound(round: number, pool: Pool): Promise<void> {
  let next = (round - 1) * REQUESTS_PER_ROUND;
  const end = next + REQUESTS_PER_ROUND;
  const caller = async () => {
    while (next < end) await ask((next += 1), pool);
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

/** @throws unless the answer has data, or an error that is not one of the gateway itself */
async function ask(number: number, pool: Pool): Promise<void> {
  const label = `i${number % LABELS}`;
  const aPage = { query: `{ persons(first: ${1 + (number % 50)}) { items { ${label}: id } } }` };
  const asked: Asked = REQUESTS[number % 25]?.(label, number) ?? aPage;
  const { query, variables, leaveAfter } = asked;
  try {
    const { body } = await pool.request({
      method: 'POST',
      path: '/graphql',
      headers: HEADERS,
      body: JSON.stringify({ query, variables }),
      ...(leaveAfter !== undefined && { signal: AbortSignal.timeout(leaveAfter) }),
    });
    const answer = await body.text();
    expect(answer).toMatch(/"data"|"code":"/);
    expect(answer).not.toMatch(/"code":"\w*(INTERNAL|UNAUTHORIZED)/);
  } catch (error) {
    if ((error as Error).name !== 'TimeoutError') throw error;
  }
}

function average(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}
