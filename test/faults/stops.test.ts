/** SIGTERM and SIGSTOP in the middle of an exchange. The service revokes the old access token, so only a saved pair serves. */
import { expect, test } from 'vitest';
import { standsStill } from '../support/tokens/fault-process.ts';
import { eventually, saved, startFaultWorld } from '../support/tokens/fault-world.ts';

test.concurrent(
  'two SIGTERM during an exchange end the gateway after the pair is saved',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    const answer = world.sandbox.tokenAnswers.hold('after');
    const gateway = await world.serve();
    await answer.arrived;
    gateway.signal('SIGTERM');
    await gateway.printed(/stopping: .* a token pair is saved first/);
    gateway.signal('SIGTERM');
    gateway.signal('SIGINT');
    answer.release();
    expect(await gateway.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(await world.left()).toEqual(saved(2, ['answered']));
  },
);

test.concurrent.each(['before the claim', 'after the claim'] as const)(
  'after SIGTERM %s nothing more is sent, and nothing is uncertain',
  async (at) => {
    await using world = await startFaultWorld();
    const gateway = await world.hanging({ at });
    await gateway.printed(/REACHED/);
    gateway.signal('SIGTERM');
    await gateway.printed(/STOPPING/);
    gateway.tell('go');
    expect(await gateway.ended).toMatchObject({ code: 0, signal: null });
    expect(world.outcomes()).toEqual([]);
    expect(await world.stored()).toMatchObject({ generation: 1, claim: null });
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);

test.concurrent(
  'a gateway that was stopped between the claim and the request, for longer than every time-out, sends nothing on waking',
  async () => {
    await using world = await startFaultWorld();
    const holder = await world.hanging({ at: 'after the claim' });
    await holder.printed(/REACHED after the claim/);
    holder.signal('SIGSTOP');
    await standsStill(holder);

    const other = await world.serve();
    await other.serves();
    await world.claimIsOver();
    await world.expire();
    await other.serves();
    expect(world.outcomes()).toEqual(['answered']);

    // The time that has passed for a real clock.
    holder.tell(`later ${10 * 60_000}`);
    holder.tell('go');
    holder.signal('SIGCONT');
    await holder.printed(/TOLD go/);
    await holder.serves();
    await Promise.all([holder.stop(), other.stop()]);
    expect(await world.left()).toEqual(saved(2, ['answered']));
  },
);

test.concurrent(
  'a gateway that was stopped while the answer arrived saves the pair afterwards, with one request in all',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    const answer = world.sandbox.tokenAnswers.hold('after');
    const gateway = await world.hanging();
    await answer.arrived;
    gateway.signal('SIGSTOP');
    await standsStill(gateway);
    answer.release();
    await eventually(() => expect(world.outcomes()).toEqual(['answered']));
    gateway.tell(`later ${10 * 60_000}`);
    gateway.signal('SIGCONT');
    await gateway.printed(/access token refreshed/);
    await gateway.serves();
    expect(await gateway.stop()).toMatchObject({ code: 0 });
    expect(await world.left()).toEqual(saved(2, ['answered']));
  },
);
