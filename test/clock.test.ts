import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createClock } from '../src/clock.ts';

test('the time never goes back, and is right to within one reading', () => {
  const event = fc.tuple(
    fc.constantFrom('run', 'suspend', 'setWall', 'look'),
    fc.double({ min: 0, max: 50, noNaN: true }),
  );
  fc.assert(
    fc.property(fc.array(event, { maxLength: 200 }), (events) => {
      const machine = startMachine();
      let last = machine.clock.elapsed();
      for (const [kind, ms] of events) {
        if (kind === 'run') machine.run(ms);
        else if (kind === 'suspend') machine.suspend(ms);
        else if (kind === 'setWall') machine.setWall(ms - 25);
        const elapsed = machine.clock.elapsed();
        expect(elapsed).toBeGreaterThanOrEqual(last);
        last = elapsed;
        expect(elapsed).toBeLessThanOrEqual(machine.sinceBoot() + 1e-6);
      }
      machine.run(10);
      expect(machine.sinceBoot() - machine.clock.elapsed()).toBeLessThan(machine.rounding + 1e-6);
    }),
  );
});

/** A machine whose time passes when the test says so. Its boot time is rounded down, as on Linux. */
function startMachine() {
  const rounding = 10;
  let boot = 86_400_003;
  let steady = 1_234.5;
  let wall = Date.UTC(2026, 0, 1);
  const clock = createClock({
    wall: () => wall,
    steady: () => steady,
    sinceBoot: () => Math.floor(boot / rounding) * rounding,
  });
  return {
    clock,
    rounding,
    sinceBoot: () => boot,
    run: (ms: number) => {
      boot += ms;
      steady += ms;
      wall += ms;
    },
    suspend: (ms: number) => {
      boot += ms;
      wall += ms;
    },
    setWall: (by: number) => void (wall += by),
  };
}
