/** kill -9 at every point of an exchange, and how the next start continues. */
import { describe, expect, test } from 'vitest';
import { expectPrintedFor } from '../support/gateway/operator-lines.ts';
import { standsStill } from '../support/tokens/fault-process.ts';
import {
  eventually,
  type FaultGateway,
  type FaultWorld,
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
  expect(next.said).not.toContain('uncertain');
  expect(world.outcomes()).toEqual(['answered']);
  expect((await world.command('tokens', 'status')).code).toBe(0);
  expect(await world.holdsTheLastPair()).toBe(true);
});

describe('after kill -9 between the claim and the request', () => {
  test.concurrent(
    'the tokens are uncertain while the access token works, and are sent once more when it ends, unnoticed by callers',
    async () => {
      await using world = await startFaultWorld();
      await killedAt(world, 'after the claim');
      expect(world.outcomes()).toEqual([]);
      const next = await servesInDoubt(world, []);
      await replayWorks(world, next);
      expect(world.outcomes()).toEqual(['answered']);
    },
  );

  test.concurrent(
    'the refresh token is sent once more at once if the access token has expired',
    async () => {
      await using world = await startFaultWorld();
      await killedAt(world, 'after the claim');
      world.expire();
      const next = await world.serve();
      await next.printed(/does not work: the refresh token is sent once more/);
      await replayWorks(world, next);
      expect(world.outcomes()).toEqual(['answered']);
    },
  );

  test.concurrent(
    '`tokens recover` explains what happened, and sends the refresh token once more at once',
    async () => {
      await using world = await startFaultWorld();
      await killedAt(world, 'after the claim');
      const recovered = await world.command('tokens', 'recover');
      expect(recovered.code).toBe(0);
      expect(recovered.stdout).toContain('its process ended before the answer was saved');
      expect(recovered.stdout).toContain('Generation 2 is in use');
      expect(world.outcomes()).toEqual(['answered']);
      expect(await world.holdsTheLastPair()).toBe(true);
    },
  );
});

test.concurrent(
  'after kill -9 during a request that was not processed, the refresh token is sent once more, which succeeds',
  async () => {
    await using world = await startFaultWorld();
    const request = world.sandbox.tokenAnswers.hold('before');
    const gateway = await world.serve();
    await request.arrived;
    await gateway.kill();
    await request.left;
    const next = await servesInDoubt(world, ['not-processed']);
    await replayWorks(world, next);
    expect(world.outcomes()).toEqual(['not-processed', 'answered']);
  },
);

test.concurrent(
  'after kill -9 between the save and the first use, the pair is used without another request',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    await killedAt(world, 'after the save');
    const next = await world.serve();
    await next.serves();
    await next.stop();
    expect(next.said).not.toContain('uncertain');
    expect(world.outcomes()).toEqual(['answered']);
    expect(await world.stored()).toMatchObject({ generation: 2, claim: null });
    expect((await world.command('tokens', 'status')).code).toBe(0);
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);

const afterTheServiceRefreshed = [
  { name: 'the answer on its way', die: diesBeforeTheAnswer, outcome: 'spent-in-silence' },
  { name: 'the answer come, unread', die: diesWithTheAnswerUnread, outcome: 'answered' },
  { name: 'the answer read, unsaved', die: diesBeforeTheSave, outcome: 'answered' },
] as const;

describe.each(afterTheServiceRefreshed)(
  'kill -9 after the service issued a new pair, $name',
  (row) => {
    test.concurrent(
      'the old access token serves while it works; then the refresh token is sent once more, and the loss is reported',
      async () => {
        await using world = await startFaultWorld();
        await row.die(world);
        const gateway = await servesInDoubt(world, [row.outcome]);
        world.expire();
        const { errors } = await gateway.ask();
        expect(errors).toMatchObject([{ extensions: { code: 'TOKENS_LOST' } }]);
        await isLost(world, gateway);
        expect(world.outcomes()).toEqual([row.outcome, 'invalid-grant']);
      },
    );

    test.concurrent(
      'with revoke on refresh the refresh token is sent once more at once, and the loss is reported',
      async () => {
        await using world = await startFaultWorld({ revoke: true });
        await row.die(world);
        const gateway = await world.serve();
        await isLost(world, gateway);
        expect(world.outcomes()).toEqual([row.outcome, 'invalid-grant']);
      },
    );
  },
);

test.concurrent(
  'repeated kill -9 during recovery causes one request for each start, and the state is never "healthy"',
  async () => {
    await using world = await startFaultWorld();
    await killedAt(world, 'after the claim');
    world.expire();
    for (const calls of [1, 2]) {
      const request = world.sandbox.tokenAnswers.hold('before');
      const gateway = await world.serve();
      await request.arrived;
      await gateway.kill();
      expect(world.outcomes()).toHaveLength(calls);
      const status = await world.command('tokens', 'status');
      expect(status).toMatchObject({ code: 1, stdout: expect.stringContaining('uncertain: ') });
      expect(status.stdout).not.toContain('healthy');
    }
    await killedAt(world, 'after the claim');
    await killedAt(world, 'before the claim');
    const gateway = await world.serve();
    await gateway.printed(/access token refreshed/);
    await gateway.serves();
    await gateway.stop();
    expect(world.outcomes()).toEqual(['not-processed', 'not-processed', 'answered']);
    expect((await world.command('tokens', 'status')).code).toBe(0);
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);

test.concurrent(
  'after kill -9 before a refusal is recorded, the refresh token is refused once more and the loss is reported',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    await diesBeforeTheSave(world);
    await killedAt(world, 'before it records the ending');
    expect((await world.command('tokens', 'status')).code).toBe(1);
    const gateway = await world.serve();
    await isLost(world, gateway);
    expect(world.outcomes()).toEqual(['answered', 'invalid-grant', 'invalid-grant']);
    const again = await world.serve();
    await again.printed(/an earlier exchange of it never got its answer/);
    await again.ask();
    expect(world.outcomes()).toHaveLength(3);
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

async function diesBeforeTheSave(world: FaultWorld): Promise<void> {
  await killedAt(world, 'before the save');
  await eventually(() => expect(world.outcomes()).toEqual(['answered']));
}

/** The first start after the kill, with requests and `tokens status`. */
async function servesInDoubt(world: FaultWorld, outcomes: string[]): Promise<FaultGateway> {
  const next = await world.serve();
  await next.printed(/ended without a clear answer, so the token may be spent/);
  await next.serves();
  expect(await world.command('tokens', 'status')).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('uncertain: '),
  });
  expect(world.outcomes()).toEqual(outcomes);
  return next;
}

async function replayWorks(world: FaultWorld, gateway: FaultGateway): Promise<void> {
  world.expire();
  await gateway.serves();
  await gateway.printed(/access token refreshed/);
  await gateway.stop();
  expect((await world.command('tokens', 'status')).code).toBe(0);
  expect(await world.holdsTheLastPair()).toBe(true);
}

async function isLost(world: FaultWorld, gateway: FaultGateway): Promise<void> {
  await gateway.printed(/an earlier exchange of it never got its answer/);
  const answer = await gateway.ask();
  expect(answer.errors).toMatchObject([{ extensions: { code: 'TOKENS_LOST' } }]);
  await expectPrintedFor(gateway, answer, 'The refresh token is spent: an earlier exchange');
  expect(await world.command('tokens', 'status')).toMatchObject({
    code: 2,
    stdout: expect.stringContaining('LOST'),
  });
  await gateway.stop();
}
