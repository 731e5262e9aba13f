/** Several processes on one store, and stores that a gateway cannot use. */
import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { askAt } from '../support/gateway/ask-at.ts';
import { titleOf } from '../support/tokens/fault-process.ts';
import { eventually, startFaultWorld } from '../support/tokens/fault-world.ts';
import { personUnlikeOthers } from '../support/clients/unlike.ts';

test.concurrent(
  'two gateways on one store with 50 requests each make one exchange at the expiry, and no caller gets an error',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    const [first, second] = await Promise.all([world.serve(), world.serve()]);
    await Promise.all([first.serves(), second.serves()]);
    await eventually(async () => expect((await world.stored()).generation).toBe(2));
    expect(world.outcomes()).toEqual(['answered']);
    await world.expire();
    await Promise.all(Array.from({ length: 50 }, () => [first.serves(), second.serves()]).flat());
    expect(world.outcomes()).toEqual(['answered', 'answered']);
    await Promise.all([first.stop(), second.stop()]);
    expect(await world.stored()).toMatchObject({ generation: 3, claim: null });
    expect((await world.command('tokens', 'status')).code).toBe(0);
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);

test.concurrent(
  'three gateways that start with one link on an empty store make one import and one exchange, without an error',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    const extra = { TOKEN_STORE: `sqlite:${world.path}-new`, TOKEN_LINK: world.makeNewSet() };
    const started = [1, 2, 3].map(() => world.start([], { extra }));
    const answers = started.map(async (gateway) => {
      const [url] = await gateway.printed(/http:\/\/[^\s"]+\/graphql(?=[\s"])/);
      return Promise.all(Array.from({ length: 20 }, () => askAt(url, personUnlikeOthers())));
    });
    const errors = (await Promise.all(answers)).flat().flatMap((answer) => answer.errors ?? []);
    expect(errors).toEqual([]);
    await Promise.all(started.map((gateway) => gateway.stop()));
    expect(world.outcomes()).toEqual(['answered']);
    expect(started.flatMap(({ said }) => said.match(/is dead|is spent/g) ?? [])).toEqual([]);
  },
);

test.concurrent.each<[name: string, harm: (path: string) => void]>([
  [
    'overwritten in the middle',
    (path) => {
      const bytes = readFileSync(path);
      bytes.fill(0x5a, 4096, 12_288);
      writeFileSync(path, bytes);
    },
  ],
  ['truncated', (path) => truncateSync(path, Math.floor(statSync(path).size / 2) + 100)],
])('a store that is %s is refused with an explanation, and left unchanged', async (_, harm) => {
  await using world = await startFaultWorld();
  harm(world.path);
  const before = world.files();
  expect(await world.command('serve')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('The token store cannot be used'),
  });
  expect(world.files()).toEqual(before);
  expect(world.outcomes()).toEqual([]);
});

test.concurrent('a link on the command line does not appear in the process list', async () => {
  await using world = await startFaultWorld({ revoke: true });
  const link = world.makeNewSet();
  const answer = world.sandbox.tokenAnswers.hold('after');
  const importing = world.start(['tokens', 'import', link, '--replace']);
  await answer.arrived;
  expect(titleOf(importing)).toBe('recruiting-subgraph');
  answer.release();
  expect((await importing.ended).code).toBe(0);
  expect(await world.holdsTheLastPair()).toBe(true);
});
