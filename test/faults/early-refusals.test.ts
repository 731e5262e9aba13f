/** Real processes at a service that refuses every exchange before the access token has expired. */
import { copyFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { expectPrintedFor } from '../support/gateway/operator-lines.ts';
import { eventually, startFaultWorld } from '../support/tokens/fault-world.ts';

test.concurrent.each([400, 403] as const)(
  'after a refusal with status %i, gateways and commands on one store serve and send nothing until the expiry, and then exchange once',
  async (refuseEarlyRefresh) => {
    await using world = await startFaultWorld({ refuseEarlyRefresh });
    const first = await world.serve();
    await first.printed(/although the access token works/);
    const second = await world.serve();
    await second.printed(/although the access token works/);
    expect(await world.command('tokens', 'refresh')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Nothing was sent: the access token works'),
    });
    expect(await world.command('tokens', 'status')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('early-or-spent: '),
    });
    for (const gateway of [first, second]) await gateway.serves();
    expect(world.outcomes()).toEqual(['too-early']);

    world.expire();
    await Promise.all([first.serves(), second.serves(), first.serves(), second.serves()]);
    expect(world.outcomes()).toEqual(['too-early', 'answered']);
    await first.stop();
    await second.stop();
    expect(await world.command('tokens', 'status')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/Refreshes +wait for the expiry/),
    });
    world.expire();
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);

test.concurrent(
  'kill -9 before an early refusal is recorded leaves it uncertain; the next gateway serves, and loses nothing',
  async () => {
    await using world = await startFaultWorld({ refuseEarlyRefresh: 400 });
    const hanging = await world.hanging({ at: 'before it records the ending' });
    await hanging.printed(/REACHED before it records the ending/);
    await hanging.kill();
    expect(world.outcomes()).toEqual(['too-early']);
    const gateway = await world.serve();
    await gateway.printed(/An exchange of the refresh token ended without a clear answer/);
    await gateway.serves();
    expect(world.outcomes()).toEqual(['too-early']);
    world.expire();
    await gateway.serves();
    await gateway.stop();
    expect(world.outcomes()).toEqual(['too-early', 'answered']);
    expect(await world.stored()).toMatchObject({ generation: 2, lost: false, claim: null });
    world.expire();
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);

test.concurrent(
  'an old backup whose access token works is early or spent; after the expiry there are two exchanges more, and the loss names the older copy',
  async () => {
    await using world = await startFaultWorld();
    const backup = `${world.path}-backup`;
    expect((await world.command('tokens', 'refresh')).code).toBe(0);
    copyFileSync(world.path, backup);
    expect((await world.command('tokens', 'refresh')).code).toBe(0);
    copyFileSync(backup, world.path);
    // A command leaves its pair there too: on this machine it would come back.
    for (const name of readdirSync(world.rescue)) rmSync(join(world.rescue, name));

    expect(await world.command('tokens', 'refresh')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /Either it exchanges none before.*or the refresh token is spent/,
      ),
    });
    const gateway = await world.serve();
    await gateway.serves();
    expect(world.outcomes()).toEqual(['answered', 'answered', 'invalid-grant']);
    world.expire();
    const answer = await gateway.ask();
    expect(answer.errors).toMatchObject([{ extensions: { code: 'TOKENS_LOST' } }]);
    await expectPrintedFor(gateway, answer, 'older copy');
    await gateway.ask();
    await gateway.stop();
    await eventually(() =>
      expect(world.outcomes()).toEqual([
        'answered',
        'answered',
        'invalid-grant',
        'invalid-grant',
        'invalid-grant',
      ]),
    );
    expect((await world.command('tokens', 'status')).code).toBe(2);
  },
);
