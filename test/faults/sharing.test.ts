/** Several processes on one store, and stores whose content was replaced. */
import { copyFileSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { openSqliteStore } from '../../src/tokens/store/sqlite/sqlite-store.ts';
import { createSealer } from '../../src/tokens/store/seal.ts';
import { expectPrintedFor } from '../support/gateway/operator-lines.ts';
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
    // A gateway believes that a token has expired so soon only if the service accepted the token before.
    await Promise.all([first.serves(), second.serves()]);
    world.expire();
    await Promise.all(Array.from({ length: 50 }, () => [first.serves(), second.serves()]).flat());
    expect(world.outcomes()).toEqual(['answered', 'answered']);
    await Promise.all([first.stop(), second.stop()]);
    expect(await world.stored()).toMatchObject({ generation: 3, surplus: 0, claim: null });
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

test.concurrent(
  'a request that was dropped before it was processed is sent once more, unnoticed by the caller',
  async () => {
    await using world = await startFaultWorld();
    const gateway = await world.serve();
    await gateway.printed(/access token refreshed/);
    await gateway.serves();
    world.expire();
    world.sandbox.tokenAnswers.next('drop-before');
    await gateway.serves();
    await gateway.stop();
    expect(gateway.said).toContain('refresh uncertain: no clear answer');
    expect(world.outcomes()).toEqual(['answered', 'not-processed', 'answered']);
    expect((await world.command('tokens', 'status')).code).toBe(0);
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);

test.concurrent.each(['drop-after', 'cut-body'] as const)(
  'the answer is lost on the way (%s): the old access token serves; then one replay, and lost',
  async (fault) => {
    await using world = await startFaultWorld();
    world.sandbox.tokenAnswers.next(fault);
    const gateway = await world.serve();
    await gateway.printed(/refresh uncertain: no clear answer/);
    await gateway.serves();
    expect(await world.command('tokens', 'status')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('uncertain: '),
    });
    expect(world.outcomes()).toEqual(['spent-in-silence']);
    world.expire();
    const answer = await gateway.ask();
    expect(answer.errors).toMatchObject([{ extensions: { code: 'TOKENS_LOST' } }]);
    await expectPrintedFor(gateway, answer, 'an earlier exchange of it never got its answer');
    await gateway.ask();
    await gateway.stop();
    expect(world.outcomes()).toEqual(['spent-in-silence', 'invalid-grant']);
    expect((await world.command('tokens', 'status')).code).toBe(2);
  },
);

test.concurrent(
  'a lost answer with revoke on refresh leads to one more request and a reported loss, which an import ends',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    world.sandbox.tokenAnswers.next('drop-after');
    const gateway = await world.serve();
    await gateway.printed(/an earlier exchange of it never got its answer/);
    expect((await gateway.ask()).errors).toMatchObject([{ extensions: { code: 'TOKENS_LOST' } }]);
    expect(world.outcomes()).toEqual(['spent-in-silence', 'invalid-grant']);
    const link = world.makeNewSet();
    expect((await world.command('tokens', 'import', link)).code).toBe(0);
    await eventually(() => gateway.serves());
    expect(world.outcomes()).toEqual(['spent-in-silence', 'invalid-grant', 'answered']);
    expect((await world.command('tokens', 'status')).code).toBe(0);
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);

test.concurrent(
  'after an old backup is put back, one exchange is refused, and the loss names the older copy as a likely cause',
  async () => {
    await using world = await startFaultWorld();
    const backup = `${world.path}-backup`;
    const gateway = await world.serve();
    await gateway.printed(/access token refreshed/);
    copyFileSync(world.path, backup);
    await gateway.serves();
    world.expire();
    await gateway.serves();
    await gateway.stop();
    copyFileSync(backup, world.path);
    world.expire();

    const restored = await world.serve();
    const answer = await restored.ask();
    expect(answer.errors).toMatchObject([{ extensions: { code: 'TOKENS_LOST' } }]);
    await expectPrintedFor(restored, answer, 'older copy');
    await restored.ask();
    await restored.stop();
    expect(restored.said).toContain('older copy');
    expect(world.outcomes()).toEqual(['answered', 'answered', 'invalid-grant']);
    expect(await world.command('tokens', 'status')).toMatchObject({
      code: 2,
      stdout: expect.stringMatching(/lost: .*backup/),
    });
  },
);

const KEY = Buffer.alloc(32, 7).toString('base64');

interface Harm {
  name: string;
  harm(path: string): Promise<void> | void;
  extra?: Record<string, string>;
  text: string;
  /** The exit code of a gateway. Default: 1. */
  code?: number;
}

/** The exit code after a mistake in the settings, after which systemd does not start the gateway again. */
const MISTAKE = 2;

const harms: Harm[] = [
  {
    name: 'overwritten in the middle',
    harm: (path) => {
      const bytes = readFileSync(path);
      bytes.fill(0x5a, 4096, 12_288);
      writeFileSync(path, bytes);
    },
    text: 'The token store cannot be opened',
  },
  {
    name: 'truncated',
    harm: (path) => truncateSync(path, Math.floor(statSync(path).size / 2) + 100),
    text: 'The token store cannot be opened',
  },
  {
    name: 'no database',
    harm: (path) => writeFileSync(path, 'a letter to somebody'.repeat(50)),
    text: 'The token store cannot be opened',
  },
  {
    name: 'without the key it was sealed with',
    harm: async (path) => {
      await openSqliteStore(path, { sealer: createSealer([Buffer.from(KEY, 'base64')]) }).close();
    },
    text: 'TOKEN_STORE_KEY',
    code: MISTAKE,
  },
  {
    name: 'given a key it was not sealed with',
    harm: async (path) => {
      await openSqliteStore(path, { sealer: createSealer([Buffer.from(KEY, 'base64')]) }).close();
    },
    extra: { TOKEN_STORE_KEY: Buffer.alloc(32, 8).toString('base64') },
    text: 'TOKEN_STORE_KEY',
    code: MISTAKE,
  },
  {
    name: 'of another service',
    harm: () => {},
    extra: { RECRUITING_URL: 'https://other.example' },
    text: 'but RECRUITING_URL is https://other.example',
    code: MISTAKE,
  },
];

test.concurrent.each(harms)(
  'a store that is $name is refused with an explanation, and left unchanged',
  async ({ harm, text, extra, code = 1 }) => {
    await using world = await startFaultWorld();
    await harm(world.path);
    const before = world.files();
    const refused = world.start([], { extra: extra ?? {} });
    const exit = await refused.ended;
    expect(exit).toMatchObject({ code, stderr: expect.stringContaining(text) });
    expect(world.files()).toEqual(before);
    expect(world.outcomes()).toEqual([]);
  },
);

test.concurrent(
  'an expired refresh token is not sent: the loss is reported, with what to do',
  async () => {
    await using world = await startFaultWorld({ importedDaysAgo: 121 });
    const gateway = await world.serve();
    await gateway.printed(/The refresh token has reached its end/);
    // An access token that the service still accepts is used.
    await gateway.serves();
    world.expire();
    const answer = await gateway.ask();
    expect(answer.errors).toMatchObject([{ extensions: { code: 'TOKENS_LOST' } }]);
    await expectPrintedFor(gateway, answer, 'tokens import <link>');
    await gateway.stop();
    expect(world.outcomes()).toEqual([]);
    expect((await world.command('tokens', 'status')).code).toBe(2);
  },
);

test.concurrent(
  'the log and `tokens status` warn of a refresh token that expires soon',
  async () => {
    await using world = await startFaultWorld({ importedDaysAgo: 117.5 });
    expect(await world.command('tokens', 'status')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('ending: '),
    });
    const gateway = await world.serve();
    await gateway.printed(/access token refreshed/);
    await gateway.stop();
    expect(gateway.said).toMatch(/ends soon.*"daysLeft":2/);
    expect(world.outcomes()).toEqual(['answered']);
    expect((await world.command('tokens', 'status')).code).toBe(0);
    expect(await world.holdsTheLastPair()).toBe(true);
  },
);

test.concurrent(
  'if a command finds the set lost, the gateway reports it in its log, with what to do',
  async () => {
    await using world = await startFaultWorld();
    const gateway = await world.serve();
    await gateway.printed(/access token refreshed/);
    await gateway.serves();
    world.makeNewSet();
    expect((await world.command('tokens', 'refresh')).code).toBe(1);
    world.expire();
    expect((await gateway.ask()).errors).toMatchObject([{ extensions: { code: 'TOKENS_LOST' } }]);
    await gateway.printed(/FATAL: The recruiting service refuses.*run `tokens import <link>`/);
    await gateway.stop();
    expect(world.outcomes()).toEqual(['answered', 'invalid-grant']);
  },
);

test.concurrent('a link on the command line does not appear in the process list', async () => {
  await using world = await startFaultWorld({ revoke: true });
  const link = world.makeNewSet();
  const answer = world.sandbox.tokenAnswers.hold('after');
  const importing = world.start(['tokens', 'import', link, '--replace']);
  await answer.arrived;
  expect(titleOf(importing)).toBe('recruiting-subgraph');
  answer.release();
  expect(await importing.ended).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('the link no longer works'),
  });
  expect(await world.holdsTheLastPair()).toBe(true);
});
