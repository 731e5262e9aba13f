/** Answers of the token endpoint that carry a pair in another way than the service documents. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as zlib from 'node:zlib';
import { expect, test } from 'vitest';
import { CARRIED_PAIRS, namedInError } from '../support/imitations/hostile-bytes.ts';
import { startFaultWorld, type FaultWorld } from '../support/tokens/fault-world.ts';

test.concurrent(
  'a pair in a 203, in gzip, in UTF-16 or before other bytes is kept by gateways and commands',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    const { tokenAnswers } = world.sandbox;
    tokenAnswers.next((json) => ({
      status: 203,
      headers: { 'content-encoding': 'gzip' },
      body: zlib.gzipSync(`\uFEFF${json}`),
    }));
    const gateway = await world.serve();
    await gateway.printed(/access token refreshed/);
    await gateway.serves();
    const carrying = Object.entries(CARRIED_PAIRS);
    for (const [index, [form, rewrite]] of carrying.entries()) {
      tokenAnswers.next(rewrite);
      const { code, stdout } = await world.command('tokens', 'refresh');
      expect([form, code, stdout]).toEqual([
        form,
        0,
        expect.stringMatching(`generation ${index + 3} `),
      ]);
    }
    await gateway.serves();
    await gateway.stop();
    expect(world.outcomes()).toEqual(Array(1 + carrying.length).fill('answered'));
    expect(answersIn(world)).toEqual([]);
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);

test.concurrent(
  'a pair in a 503 is kept byte for byte, and used if the service accepts its access token',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    world.sandbox.tokenAnswers.next(namedInError);
    const gateway = await world.serve();
    await gateway.printed(/found in an answer that was not understood/);
    await gateway.serves();
    expect(world.outcomes()).toEqual(['answered']);
    expect(await world.stored()).toMatchObject({ generation: 2, claim: null, lost: false });

    // The answer is deleted once its refresh token has worked.
    expect(answersIn(world)).toHaveLength(1);
    expect((await world.command('tokens', 'refresh')).code).toBe(0);
    expect(answersIn(world)).toEqual([]);
    await gateway.stop();
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);

test.concurrent(
  'a pair in a 503 survives kill -9: the next start reads the answer before it sends anything again',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    world.sandbox.tokenAnswers.next(namedInError);
    const gateway = await world.hanging({ at: 'before it records the ending' });
    await gateway.printed(/REACHED/);
    await gateway.kill();
    expect(answersIn(world)).toHaveLength(1);

    const next = await world.serve();
    await next.printed(/found in an answer that was not understood/);
    await next.serves();
    await next.stop();
    expect(world.outcomes()).toEqual(['answered']);
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);

/** The answers in the rescue folder. */
function answersIn({ rescue }: FaultWorld): string[] {
  return readdirSync(rescue)
    .filter((name) => name.startsWith('answer-'))
    .map((name) => readFileSync(join(rescue, name), 'utf8').trim())
    .filter((text) => text !== '');
}
