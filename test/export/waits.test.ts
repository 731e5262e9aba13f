/** Exports from a gateway that is away, or whose callers have few pages a minute. */
import { readFileSync } from 'node:fs';
import type { Plugin } from 'graphql-yoga';
import { expect, test } from 'vitest';
import { startFront } from '../support/gateway/front.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { ManualClock, MINUTE } from '../support/random/manual-clock.ts';

const snapshot = readFileSync('schema/rich.graphql', 'utf8');
const FIELDS = 'id allCandidates { id comments(first: 50) { items { text } } }';

/** Exports the vacancies with their candidates. Its waits end at once, and take their time on the clock. */
async function exportWith(pagesPerMinute: number, ...plugins: Plugin[]) {
  const clock = new ManualClock();
  await using front = await startFront(
    { schema: 'rich' },
    { snapshot, clock, plugins, config: { pagesPerMinute } },
  );
  const start = clock.elapsed();
  const { now, elapsed, timer } = clock;
  const ended = await runHere(
    ['export', 'vacancies', '--fields', FIELDS, '--url', front.url],
    {},
    { clock: { now, elapsed, timer, sleep: async (ms) => clock.jump(ms) } },
  );
  return { ...ended, minutes: (clock.elapsed() - start) / MINUTE };
}

test('when the minute ends in the middle of a list below a record, the export requests fewer records at a time, and is whole', async () => {
  const { code, stdout, stderr, minutes } = await exportWith(40);
  expect(stderr).toContain('64 records');
  const whole = await exportWith(0);
  expect(whole.stderr).not.toContain('Trying again');
  expect([code, stdout === whole.stdout]).toEqual([0, true]);
  // Half of the pages at most are used for what is refused.
  expect(minutes).toBeLessThan((2 * 150) / 40);
});

test('a record that costs more than a minute has is an error', async () => {
  const { code, stdout, stderr, minutes } = await exportWith(1);
  expect([code, stdout]).toEqual([1, '']);
  expect(minutes).toBeLessThanOrEqual(10);
  expect(stderr).toMatch(/costs at least 2 pages .*PAGES_PER_MINUTE.*\n$/);
});

const away: Plugin = {
  onRequest: ({ endResponse }) => endResponse(new Response('', { status: 503 })),
};

test('when the gateway never answers, the export gives up after 5 minutes', async () => {
  const { code, stderr, minutes } = await exportWith(0, away);
  expect(code).toBe(1);
  expect(stderr).toContain('Trying again in 10 s.\n');
  expect(minutes).toBeGreaterThan(4);
  expect(minutes).toBeLessThanOrEqual(5);
});
