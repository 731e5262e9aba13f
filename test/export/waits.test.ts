/** Exports from a gateway that is away, or whose callers have few pages a minute. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { GatewayFailure, gatewayInside, type Gateway } from '../../src/export/gateway.ts';
import { exportedList } from '../../src/export/list.ts';
import { Patience, readPages } from '../../src/export/pages.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { ManualClock, MINUTE } from '../support/random/manual-clock.ts';

const snapshot = readFileSync('schema/rich.graphql', 'utf8');
const FIELDS = 'id allCandidates { id comments(first: 50) { items { text } } }';
const { signal } = new AbortController();

/**
 * Exports the vacancies with their candidates. Its waits end at once, and take their time on the clock.
 *
 * @param fails throws what happens to each request behind those that find the list
 */
async function exportWith(pagesPerMinute: number, fails = () => {}) {
  const clock = new ManualClock();
  await using inside = await startGatewayOverService(
    { schema: 'rich' },
    { snapshot, clock, config: { pagesPerMinute } },
  );
  const over = gatewayInside(inside.gateway.handler);
  const list = await exportedList({ field: 'vacancies', fields: FIELDS }, over, signal);
  const gateway: Gateway = {
    ...over,
    send: async (...request) => {
      fails();
      return await over.send(...request);
    },
  };
  const waits: number[] = [];
  const sleep = async (ms: number) => clock.jump(ms);
  const hasty = { now: clock.now, elapsed: clock.elapsed, sleep, timer: clock.timer };
  const patience = new Patience(hasty, signal, (_failure, seconds) => void waits.push(seconds));
  const options = { gateway, list, after: undefined, needed: () => Infinity, patience, signal };
  const start = clock.elapsed();
  const records: unknown[] = [];
  let error: unknown;
  try {
    for await (const page of readPages(options)) {
      expect(page.faults).toEqual([]);
      records.push(...page.records);
    }
  } catch (thrown) {
    error = thrown;
  }
  return { records, error, waits, minutes: (clock.elapsed() - start) / MINUTE };
}

test('when the minute ends in the middle of a list below a record, the export requests fewer records at a time, and is whole', async () => {
  const { records, error, minutes } = await exportWith(160);
  expect(error).toBeUndefined();
  const whole = await exportWith(0);
  expect(records).toEqual(whole.records);
  expect(whole).toMatchObject({ waits: [], records: { length: 64 } });
  // Half of the pages at most are used for what is refused.
  expect(minutes).toBeLessThan((2 * 6_000) / 160);
});

test('a record that costs more than a minute has is an error after one try with it alone', async () => {
  const { records, error, minutes } = await exportWith(60);
  expect(records).toEqual([]);
  // A minute before each smaller operation: 500, 250, 125, and so on.
  expect(minutes).toBeLessThanOrEqual(9);
  expect(error).toMatchObject({
    message: expect.stringMatching(/single record .* Select less, .*\(first: n\), .*without --url/),
  });
});

test('when the gateway never answers, the export gives up after 5 minutes', async () => {
  const away = new GatewayFailure('It is away.', { isTemporary: true });
  const { error, waits, minutes } = await exportWith(0, () => {
    throw away;
  });
  expect(error).toBe(away);
  expect(waits.slice(0, 7)).toEqual([1, 2, 4, 8, 16, 30, 30]);
  expect(minutes).toBeGreaterThan(4);
  expect(minutes).toBeLessThanOrEqual(5);
});
