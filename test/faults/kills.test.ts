/** kill -9 at every point of an exchange, and how the next start continues. */
import { describe, expect, test } from 'vitest';
import { someOf } from '../support/random/some-of.ts';
import { standsStill } from '../support/tokens/fault-process.ts';
import {
  eventually,
  type FaultGateway,
  type FaultWorld,
  saved,
  startFaultWorld,
} from '../support/tokens/fault-world.ts';
import type { HangingPoint } from '../support/tokens/hanging-gateway.ts';

test.concurrent('after kill -9 before the claim the next start is a normal one', async () => {
  await using world = await startFaultWorld();
  await killedAt(world, 'before the claim');
  const next = await world.serve();
  await next.printed(/access token refreshed/);
  await next.serves();
  await next.stop();
  expect(await world.left()).toEqual(saved(2, ['answered']));
});

describe('after kill -9 with a claim whose request was not processed', () => {
  test.concurrent(
    'the old access token serves, and the refresh token is sent once more when it ends, unnoticed by callers',
    async () => {
      await using world = await startFaultWorld();
      await killedAt(world, 'after the claim');
      const next = await servesInDoubt(world, []);
      await replayWorks(world, next);
      expect(await world.left()).toEqual(saved(2, ['answered']));
    },
  );

  test.concurrent('the same holds if the request was already sent', async () => {
    await using world = await startFaultWorld();
    const request = world.sandbox.tokenAnswers.hold('before');
    const gateway = await world.serve();
    await request.arrived;
    await gateway.kill();
    await request.left;
    const next = await servesInDoubt(world, ['not-processed']);
    await replayWorks(world, next);
    expect(await world.left()).toEqual(saved(2, ['not-processed', 'answered']));
  });

  test.concurrent('`tokens recover` sends the refresh token once more at once', async () => {
    await using world = await startFaultWorld();
    await killedAt(world, 'after the claim');
    await world.claimIsOver();
    expect((await world.command('tokens', 'recover')).code).toBe(0);
    expect(await world.left()).toEqual(saved(2, ['answered']));
  });
});

test.concurrent(
  'after kill -9 between the save and the first use, the pair is used without another request',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    await killedAt(world, 'after the save');
    const next = await world.serve();
    await next.serves();
    await next.stop();
    expect(await world.left()).toEqual(saved(2, ['answered']));
  },
);

test.concurrent(
  'after kill -9 between the answer and the save, the next start saves the pair of the emergency file',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    await killedAt(world, 'before the save');
    expect(world.unsaved()).toBe(1);
    const next = await world.serve();
    await next.serves();
    await next.stop();
    expect(world.unsaved()).toBe(0);
    expect(await world.left()).toEqual(saved(2, ['answered']));
  },
);

const DEATHS = [
  { name: 'on its way', die: diesBeforeTheAnswer, outcome: 'spent-in-silence' },
  { name: 'there, unread', die: diesWithTheAnswerUnread, outcome: 'answered' },
] as const;

describe.each(someOf(DEATHS))('after kill -9 with the answer $name', ({ die, outcome }) => {
  test.concurrent(
    'the old access token serves while it works; then the refresh token is refused, and the loss is reported',
    async () => {
      await using world = await startFaultWorld();
      await die(world);
      const gateway = await servesInDoubt(world, [outcome]);
      await world.expire();
      expect((await gateway.ask()).errors).toMatchObject([
        { extensions: { code: 'UPSTREAM_UNREACHABLE' } },
      ]);
      await isLost(world, gateway);
      // An imported pair is lost after the second refusal: somebody watches.
      expect(world.outcomes()).toEqual([outcome, 'invalid-grant', 'invalid-grant']);
    },
  );
});

test.concurrent(
  'repeated kill -9 during recovery causes one request for each start, and the state is never "healthy"',
  async () => {
    await using world = await startFaultWorld();
    await killedAt(world, 'after the claim');
    await world.claimIsOver();
    for (const calls of [1, 2]) {
      await world.expire();
      const request = world.sandbox.tokenAnswers.hold('before');
      const gateway = await world.serve();
      const answered = gateway.ask().catch(() => {});
      await request.arrived;
      await gateway.kill();
      await answered;
      expect(world.outcomes()).toHaveLength(calls);
      await world.claimIsOver();
      expect((await world.command('tokens', 'status')).code).toBe(1);
    }
    const gateway = await world.serve();
    await gateway.serves();
    await gateway.stop();
    expect(await world.left()).toEqual(saved(2, ['not-processed', 'not-processed', 'answered']));
  },
);

async function killedAt(world: FaultWorld, at: HangingPoint): Promise<void> {
  const gateway = await world.hanging({ at });
  await gateway.printed(new RegExp(`REACHED ${at}`));
  await gateway.kill();
}

async function diesBeforeTheAnswer(world: FaultWorld): Promise<void> {
  const answer = world.sandbox.tokenAnswers.hold('after');
  const gateway = await world.serve();
  await answer.arrived;
  await gateway.kill();
  await answer.left;
}

async function diesWithTheAnswerUnread(world: FaultWorld): Promise<void> {
  const answer = world.sandbox.tokenAnswers.hold('after');
  const gateway = await world.serve();
  await answer.arrived;
  gateway.signal('SIGSTOP');
  await standsStill(gateway);
  answer.release();
  await eventually(() => expect(world.outcomes()).toEqual(['answered']));
  await gateway.kill();
}

/** The first start after the kill, with requests and `tokens status`. */
async function servesInDoubt(world: FaultWorld, outcomes: string[]): Promise<FaultGateway> {
  await world.claimIsOver();
  const next = await world.serve();
  await next.serves();
  expect(await world.command('tokens', 'status')).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('uncertain'),
  });
  expect(world.outcomes()).toEqual(outcomes);
  return next;
}

async function replayWorks(world: FaultWorld, gateway: FaultGateway): Promise<void> {
  await world.expire();
  await gateway.serves();
  await gateway.stop();
}

async function isLost(world: FaultWorld, gateway: FaultGateway): Promise<void> {
  await gateway.printed(/The service refuses the refresh token for good/);
  expect((await gateway.ask()).errors).toMatchObject([{ extensions: { code: 'TOKENS_LOST' } }]);
  expect((await world.command('tokens', 'status')).code).toBe(2);
  await gateway.stop();
}
