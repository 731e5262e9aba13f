/** Exports through a gateway whose callers have few pages a minute. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { gatewayInside } from '../../src/export/gateway.ts';
import { exportedList } from '../../src/export/list.ts';
import { Patience, readPages } from '../../src/export/pages.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { ManualClock } from '../support/random/manual-clock.ts';

const snapshot = readFileSync('schema/rich.graphql', 'utf8');
const FIELDS = 'id allCandidates { id comments(first: 50) { items { text } } }';

/** Exports the vacancies with their candidates. Its waits end at once, and take their time on the clock. */
async function exportWith(pagesPerMinute: number, after?: string) {
  const clock = new ManualClock();
  await using inside = await startGatewayOverService(
    { schema: 'rich' },
    { snapshot, clock, config: { pagesPerMinute } },
  );
  const gateway = gatewayInside(inside.gateway.handler);
  const { signal } = new AbortController();
  const list = await exportedList({ field: 'vacancies', fields: FIELDS }, gateway, signal);
  const waits: number[] = [];
  const sleep = async (ms: number) => clock.jump(ms);
  const hasty = { now: clock.now, elapsed: clock.elapsed, sleep };
  const records: unknown[] = [];
  const read = readPages({
    gateway,
    list,
    after,
    needed: () => Infinity,
    patience: new Patience(hasty, signal, (_failure, seconds) => void waits.push(seconds)),
    signal,
  });
  let error: unknown;
  try {
    for await (const page of read) {
      expect(page.faults).toEqual([]);
      records.push(...page.records);
    }
  } catch (thrown) {
    error = thrown;
  }
  return { records, error, minutes: waits.reduce((sum, seconds) => sum + seconds, 0) / 60 };
}

test('when the minute ends in the middle of a list below a record, the export requests fewer records at a time, and is whole', async () => {
  const { records, error, minutes } = await exportWith(160);
  expect(error).toBeUndefined();
  const whole = await exportWith(0);
  expect(records).toEqual(whole.records);
  expect(whole).toMatchObject({ minutes: 0, records: { length: 64 } });
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

test('a list is read from its start where the cursor of an interrupted export is not found', async () => {
  const { records, error } = await exportWith(0, 'cursor of a removed record');
  expect({ records, error }).toEqual({ records: (await exportWith(0)).records, error: undefined });
});
