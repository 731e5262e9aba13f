import { setTimeout as wait } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock, type Clock } from '../../src/clock.ts';
import { startService } from '../service/service.ts';
import { startGateway } from '../support/gateway/gateway.ts';
import { codesOf } from '../support/tokens/tokens.ts';
import { personUnlikeOthers } from '../support/clients/unlike.ts';

const LIFE_S = 2;
const LIVES = 10;

test(
  'no request fails during ten lives of an access token under load, with every third exchange cut off',
  { timeout: 90_000 },
  async () => {
    const clock = tenTimesAsFast();
    const { now } = clock;
    const options = { expiresIn: LIFE_S, revokeOnRefresh: true, persons: 3, now };
    const sandbox = await startService(options);
    onTestFinished(() => sandbox.close());
    sandbox.tokenAnswers.every(3, 'drop-before');
    await using gateway = await startGateway(sandbox, { clock });

    const failures: unknown[] = [];
    let asked = 0;
    const done = new AbortController();
    const load = Array.from({ length: 4 }, async () => {
      while (!done.signal.aborted) {
        failures.push(...codesOf(await gateway.ask(personUnlikeOthers())));
        asked += 1;
        // Constant, but less than the machine can do: other tests run beside it.
        await wait(5);
      }
    });
    // As long as it takes: the refreshes are counted, not the time.
    while (sandbox.stats.refreshes < LIVES + 1) await wait(50);
    done.abort();
    await Promise.all(load);

    expect(failures).toEqual([]);
    expect(asked).toBeGreaterThan(LIVES);
    const outcomes = sandbox.exchanges.map(({ outcome }) => outcome);
    expect(outcomes.filter((outcome) => outcome === 'not-processed').length).toBeGreaterThan(2);
    expect(outcomes).not.toContain('invalid-grant');
    const answered = sandbox.exchanges.filter(({ outcome }) => outcome === 'answered');
    expect(new Set(answered.map(({ refreshToken }) => refreshToken)).size).toBe(answered.length);
  },
);

/** For the gateway and the service: a life takes a tenth of its time. */
function tenTimesAsFast(): Clock {
  const { now, elapsed, sleep } = systemClock;
  const start = { wall: now(), elapsed: elapsed() };
  return {
    now: () => start.wall + 10 * (now() - start.wall),
    elapsed: () => start.elapsed + 10 * (elapsed() - start.elapsed),
    sleep: (ms, signal) => sleep(ms / 10, signal),
  };
}
