/** Stores that other processes keep locked or that never answer, and locks that are removed. */
import { rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { standsStill } from '../support/tokens/fault-process.ts';
import { eventually, startFaultWorld, type FaultGateway } from '../support/tokens/fault-world.ts';

test.concurrent(
  'while another program locks the store, requests that need no store are answered, and the others continue afterwards',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    const gateway = await world.serve();
    await gateway.printed(/access token refreshed/);
    await gateway.serves();
    using foreign = new DatabaseSync(world.path);
    foreign.exec('BEGIN EXCLUSIVE');
    await gateway.serves();
    const before = world.sandbox.stats.requests.graphql;
    world.expire();
    const answered = gateway.serves();
    await eventually(() => expect(world.sandbox.stats.requests.graphql).toBe(before + 1));
    await isHealthy(gateway);
    foreign.exec('ROLLBACK');
    await answered;
    await gateway.stop();
    expect(world.outcomes()).toEqual(['answered', 'answered']);
    expect(await world.stored()).toMatchObject({ generation: 3, claim: null });
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);

test.concurrent(
  'if a gateway is stopped inside a transaction, another one starts, serves and waits, and there is one exchange when it wakes',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    const holder = await world.hanging({ at: 'within the transaction of the claim' });
    await holder.printed(/REACHED within the transaction/);
    await standsStill(holder);
    const other = await world.hanging();
    await other.serves();
    const impatience = setInterval(() => other.tell('later 200000'), 100);
    await other.printed(/"trouble":"blocked".*A refresh is due and cannot begin\./);
    await other.serves();
    world.expire();
    const answered = other.ask();
    await isHealthy(other);
    expect((await answered).errors).toMatchObject([
      { extensions: { code: 'INTERNAL_SERVER_ERROR' } },
    ]);
    clearInterval(impatience);
    world.unexpire();
    expect(world.outcomes()).toEqual([]);
    holder.signal('SIGCONT');
    await eventually(() => expect(world.outcomes()).toEqual(['answered']));
    await other.serves();
    await holder.serves();
    await Promise.all([other.stop(), holder.stop()]);
    expect(world.outcomes()).toEqual(['answered']);
    expect(await world.stored()).toMatchObject({ generation: 2, claim: null });
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);

test.concurrent(
  'if the lock file is deleted during an exchange, another gateway and a command make no second one',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    const answer = world.sandbox.tokenAnswers.hold('after');
    const gateway = await world.serve();
    await answer.arrived;
    rmSync(`${world.path}-lock`);
    const other = await world.serve();
    const refreshing = world.command('tokens', 'refresh');
    // By now the exchange has ended the access token at the service.
    const before = world.sandbox.stats.requests.graphql;
    const answered = other.serves();
    await eventually(() => expect(world.sandbox.stats.requests.graphql).toBe(before + 1));
    expect(await world.stored()).toMatchObject({ generation: 1, claim: { live: true } });
    answer.release();
    await answered;
    expect(await refreshing).toMatchObject({ code: 0 });
    await Promise.all([gateway.stop(), other.stop()]);
    expect(world.outcomes()).toEqual(['answered']);
    expect(await world.stored()).toMatchObject({ generation: 2, surplus: 0, claim: null });
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);

test.concurrent(
  'a save that never ends leaves the pair in the rescue file and in use, SIGTERM works, and the next start saves it',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    const gateway = await world.hanging({ at: 'before the save' });
    await gateway.printed(/is in the rescue file; the next start saves it/);
    expect(world.rescued()).toBe(1);
    await gateway.serves();
    gateway.signal('SIGTERM');
    await gateway.printed(/STOPPING/);
    gateway.tell('later 6000');
    expect(await gateway.ended).toMatchObject({ code: 0, signal: null });
    const next = await world.serve();
    await next.printed(/a token pair was saved from a rescue file/);
    await next.serves();
    await next.stop();
    expect(world.rescued()).toBe(0);
    expect(world.outcomes()).toEqual(['answered']);
    expect(await world.stored()).toMatchObject({ generation: 2, claim: null });
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);

test.concurrent(
  'a claim that never ends does not prevent SIGTERM, and nothing is sent',
  async () => {
    await using world = await startFaultWorld();
    const gateway = await world.hanging({ at: 'before the claim' });
    await gateway.printed(/REACHED before the claim/);
    await gateway.serves();
    gateway.signal('SIGTERM');
    expect(await gateway.ended).toMatchObject({ code: 0, signal: null });
    expect(world.outcomes()).toEqual([]);
    expect(await world.stored()).toMatchObject({ generation: 1, claim: null });
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);

async function isHealthy(gateway: FaultGateway): Promise<void> {
  expect((await fetch(new URL('/health', gateway.url))).status).toBe(200);
}
