/**
 * System calls that fail on the way of an exchange: strace makes the kernel refuse some of them, at every point in turn.
 * The service revokes the old access token, so a pair that got lost would be missed.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { startFaultWorld } from '../support/tokens/fault-world.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** False, too, where the system does not allow tracing. */
const canTrace = spawnSync('strace', ['-qq', '-o', '/dev/null', 'true']).status === 0;

const FAULTS = [
  // Room for a pair is a precaution, and a claim is a condition: without it, nothing is sent.
  { call: 'fsync', error: 'EIO', refuses: true },
  { call: 'pwrite64', error: 'ENOSPC', refuses: true },
  { call: 'ftruncate', error: 'EIO', refuses: false },
  { call: 'unlink', error: 'EIO', refuses: false },
];
const cases = FAULTS.map((fault) => ({ ...fault, times: 4 }));

test.skipIf(!canTrace).concurrent.each(cases)(
  '`tokens refresh` loses no pair if $call fails with $error, $times times from any call on',
  { timeout: 240_000 },
  async ({ times, refuses, ...fault }) => {
    const codes = new Set<number | null>();
    for (let first = 1; ; first += times) {
      await using world = await startFaultWorld({ revoke: true });
      const { code, injected, ...printed } = await refresh(world, { ...fault, first, times });
      if (!injected) break;
      codes.add(code);
      if (code === 0) {
        expect(printed.stdout).toContain('Refreshed: generation 2 is in use.');
        expect(world.outcomes()).toEqual(['answered']);
      } else {
        expect(printed.stderr).toContain('Nothing was lost');
        expect(world.outcomes()).toEqual([]);
      }
      expect(await world.command('tokens', 'recover')).toMatchObject({ code: 0 });
      expect(await world.holdsTheLastPair()).toBe(true);
    }
    expect(codes).toEqual(new Set(refuses ? [0, 1] : [0]));
  },
);

async function refresh(
  world: Awaited<ReturnType<typeof startFaultWorld>>,
  fault: { call: string; error: string; first: number; times: number },
) {
  using folder = temporaryFolder();
  const trace = folder.file('trace');
  const { call, error, first, times } = fault;
  const inject = `inject=${call}:error=${error}:when=${first}..${first + times - 1}`;
  // With -D, the process is a child of the test, and not of strace.
  const under = ['strace', '-D', '-f', '-qq', '-o', trace, '-e', `trace=${call}`, '-e', inject];
  const exit = await world.start(['tokens', 'refresh'], { under }).ended;
  return { ...exit, injected: readFileSync(trace, 'utf8').includes('(INJECTED)') };
}
