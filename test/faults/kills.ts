/** kill -9 at every point of an exchange, and how the next start continues. */
import { expect } from 'vitest';
import { standsStill } from '../support/tokens/fault-process.ts';
import {
  eventually,
  saved,
  type FaultGateway,
  type FaultWorld,
  type FaultWorldOptions,
} from '../support/tokens/fault-world.ts';
import type { HangingPoint } from '../support/tokens/hanging-gateway.ts';

interface Kill extends FaultWorldOptions {
  /** What happens after kill -9. */
  readonly title: string;
  readonly happens: (world: FaultWorld) => Promise<void>;
}

/** Each point of an exchange once. Where the pair survives, the service may revoke the old access token. */
export const KILLS: readonly Kill[] = [
  {
    title: 'before the claim, the next start is a normal one',
    happens: async (world) => {
      await killedAt(world, 'before the claim');
      const next = await world.serve();
      await next.printed(/access token refreshed/);
      await next.serves();
      await next.stop();
      expect(await world.left()).toEqual(saved(2, ['answered']));
    },
  },
  {
    title:
      'after the claim, the old access token serves, and the refresh token is sent once more when it ends',
    happens: async (world) => {
      await killedAt(world, 'after the claim');
      const next = await servesInDoubt(world, []);
      await world.expire();
      await next.serves();
      await next.stop();
      expect(await world.left()).toEqual(saved(2, ['answered']));
    },
  },
  {
    title:
      'with the answer unread, the old access token serves while it works, and the loss is reported then',
    happens: async (world) => {
      const answer = world.sandbox.tokenAnswers.hold('after');
      const gateway = await world.serve();
      await answer.arrived;
      gateway.signal('SIGSTOP');
      await standsStill(gateway);
      answer.release();
      await eventually(() => expect(world.outcomes()).toEqual(['answered']));
      await gateway.kill();
      await isLostAtTheExpiry(world, 'answered');
    },
  },
  {
    title: 'between the answer and the save, the next start saves the pair of the emergency file',
    revoke: true,
    happens: async (world) => {
      await killedAt(world, 'before the save');
      expect(world.unsaved()).toBe(1);
      const next = await world.serve();
      await next.serves();
      await next.stop();
      expect(world.unsaved()).toBe(0);
      expect(await world.left()).toEqual(saved(2, ['answered']));
    },
  },
  {
    title: 'between the save and the first use, the pair is used without another request',
    revoke: true,
    happens: async (world) => {
      await killedAt(world, 'after the save');
      const next = await world.serve();
      await next.serves();
      await next.stop();
      expect(await world.left()).toEqual(saved(2, ['answered']));
    },
  },
];

/** The same points with another outcome at the service, another way out, or several times. */
export const MORE_KILLS: readonly Kill[] = [
  {
    title: 'after the request was sent and not processed, the refresh token is sent once more',
    happens: async (world) => {
      const request = world.sandbox.tokenAnswers.hold('before');
      const gateway = await world.serve();
      await request.arrived;
      await gateway.kill();
      await request.left;
      const next = await servesInDoubt(world, ['not-processed']);
      await world.expire();
      await next.serves();
      await next.stop();
      expect(await world.left()).toEqual(saved(2, ['not-processed', 'answered']));
    },
  },
  {
    title: 'after the claim, `tokens recover` sends the refresh token once more at once',
    happens: async (world) => {
      await killedAt(world, 'after the claim');
      await world.claimIsOver();
      expect((await world.command('tokens', 'recover')).code).toBe(0);
      expect(await world.left()).toEqual(saved(2, ['answered']));
    },
  },
  {
    title:
      'with the answer on its way, the old access token serves while it works, and the loss is reported then',
    happens: async (world) => {
      const answer = world.sandbox.tokenAnswers.hold('after');
      const gateway = await world.serve();
      await answer.arrived;
      await gateway.kill();
      await answer.left;
      await isLostAtTheExpiry(world, 'spent-in-silence');
    },
  },
  {
    title:
      'again and again during recovery, each start sends one request, and the state is never "healthy"',
    happens: async (world) => {
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
  },
];

async function killedAt(world: FaultWorld, at: HangingPoint): Promise<void> {
  const gateway = await world.hanging({ at });
  await gateway.printed(new RegExp(`REACHED ${at}`));
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

async function isLostAtTheExpiry(world: FaultWorld, outcome: string): Promise<void> {
  const gateway = await servesInDoubt(world, [outcome]);
  await world.expire();
  expect((await gateway.ask()).errors).toMatchObject([
    { extensions: { code: 'UPSTREAM_UNREACHABLE' } },
  ]);
  await gateway.printed(/The service refuses the refresh token for good/);
  expect((await gateway.ask()).errors).toMatchObject([{ extensions: { code: 'TOKENS_LOST' } }]);
  expect((await world.command('tokens', 'status')).code).toBe(2);
  await gateway.stop();
  // An imported pair is lost after the second refusal: somebody watches.
  expect(world.outcomes()).toEqual([outcome, 'invalid-grant', 'invalid-grant']);
}
