/**
 * SIGTERM and SIGSTOP in the middle of an exchange. Where a test says that the pair survives, the service revokes the
 * old access token, with which no caller could be served.
 */
import { expect, test } from 'vitest';
import { expectPrintedFor } from '../support/gateway/operator-lines.ts';
import { standsStill } from '../support/tokens/fault-process.ts';
import { eventually, startFaultWorld } from '../support/tokens/fault-world.ts';

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
    expect(world.outcomes()).toEqual(['answered']);
    expect(await world.stored()).toMatchObject({ generation: 2, claim: null });
    expect((await world.command('tokens', 'status')).code).toBe(0);
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);

test.concurrent.each(['before the claim', 'after the claim'] as const)(
  'after SIGTERM %s nothing more is sent, and nothing is uncertain',
  async (at) => {
    await using world = await startFaultWorld();
    const gateway = await world.hanging({ at });
    await gateway.printed(/REACHED/);
    world.expire();
    const answered = gateway.ask();
    await eventually(() => expect(world.sandbox.stats.requests.graphql).toBe(1));
    gateway.signal('SIGTERM');
    await gateway.printed(/STOPPING/);
    gateway.tell('go');
    expect((await answered).errors).toMatchObject([
      {
        message: expect.stringContaining('The gateway is stopping'),
        extensions: { code: 'UPSTREAM_UNREACHABLE' },
      },
    ]);
    expect(await gateway.ended).toMatchObject({ code: 0, signal: null });
    expect(world.outcomes()).toEqual([]);
    expect(await world.stored()).toMatchObject({ generation: 1, claim: null, unanswered: 0 });
    expect((await world.history())[0]).toMatchObject({ outcome: 'unsent' });
    const status = await world.command('tokens', 'status');
    expect(status.stdout).toContain('(unsent)');
    expect(status.stdout).not.toMatch(/uncertain|LOST/);
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);

test.concurrent(
  'after SIGTERM during an exchange without an answer, the uncertainty is reported, and the next start sends once more',
  async () => {
    await using world = await startFaultWorld();
    world.sandbox.tokenAnswers.next('drop-before');
    const dropped = world.sandbox.tokenAnswers.hold('before');
    const gateway = await world.serve();
    await dropped.arrived;
    gateway.signal('SIGTERM');
    await gateway.printed(/stopping/);
    dropped.release();
    expect(await gateway.ended).toMatchObject({ code: 0, signal: null });
    expect(gateway.said).toContain('refresh uncertain: no clear answer');
    expect(await world.command('tokens', 'status')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('uncertain: '),
    });
    world.expire();
    const next = await world.serve();
    await next.serves();
    await next.stop();
    expect(world.outcomes()).toEqual(['not-processed', 'answered']);
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);

test.concurrent(
  'while a gateway is stopped between the claim and the request, others serve without an exchange, and it sends nothing afterwards',
  async () => {
    await using world = await startFaultWorld();
    const holder = await world.hanging({ at: 'after the claim' });
    await holder.printed(/REACHED after the claim/);
    holder.signal('SIGSTOP');
    await standsStill(holder);

    const other = await world.hanging();
    await other.serves();
    expect(await world.command('tokens', 'status')).toMatchObject({
      stdout: expect.stringContaining('a process is refreshing it'),
    });
    // Longer than every timeout of the gateway: a lock that is held is not overridden.
    other.tell(`later ${10 * 60_000}`);
    await other.printed(/TOLD later/);
    await other.serves();
    world.expire();
    const answered = other.ask();
    const impatience = setInterval(() => other.tell('later 5000'), 100);
    const answer = await answered.finally(() => clearInterval(impatience));
    expect(answer.errors).toMatchObject([{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }]);
    const words = 'a process on the same token store that was stopped or hangs';
    await expectPrintedFor(other, answer, words);
    world.unexpire();
    await other.serves();
    expect(world.outcomes()).toEqual([]);

    // All of this has happened when it wakes, like the time that has passed for a real clock.
    holder.tell(`later ${10 * 60_000}`);
    holder.tell('go');
    holder.signal('SIGCONT');
    await holder.printed(/TOLD go/);
    // Either of the two begins a new exchange, from its connection on.
    await eventually(() => expect(world.outcomes()).toEqual(['answered']));
    await eventually(async () => expect((await world.stored()).generation).toBe(2));
    const endings = (await world.history()).map(({ outcome }) => outcome);
    expect(endings).toEqual(['rotated', 'unsent', 'imported']);
    await holder.serves();
    await other.serves();
    expect(world.outcomes()).toEqual(['answered']);
    expect((await world.command('tokens', 'status')).code).toBe(0);
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);

test.concurrent(
  'if a gateway is stopped between the claim and the request and then killed, another one sends once more',
  async () => {
    await using world = await startFaultWorld();
    const holder = await world.hanging({ at: 'after the claim' });
    await holder.printed(/REACHED after the claim/);
    holder.signal('SIGSTOP');
    await standsStill(holder);
    const other = await world.serve();
    await other.serves();
    world.expire();
    const answered = other.serves();
    await holder.kill();
    await answered;
    expect(world.outcomes()).toEqual(['answered']);
    await other.stop();
    expect((await world.command('tokens', 'status')).code).toBe(0);
    expect(await world.holdsTheLastPair()).toBe(true);
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
    expect(world.outcomes()).toEqual(['answered']);
    expect(await world.stored()).toMatchObject({ generation: 2, claim: null });
    expect((await world.command('tokens', 'status')).code).toBe(0);
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);
