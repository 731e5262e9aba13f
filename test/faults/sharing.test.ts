/** Several processes on one store, and stores that a gateway cannot use. */
import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createSealer } from '../../src/tokens/seal.ts';
import { openSqliteStore } from '../../src/tokens/sqlite.ts';
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

const KEY = Buffer.alloc(32, 7);

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
    text: 'The token store cannot be used',
  },
  {
    name: 'truncated',
    harm: (path) => truncateSync(path, Math.floor(statSync(path).size / 2) + 100),
    text: 'The token store cannot be used',
  },
  {
    name: 'no database',
    harm: (path) => writeFileSync(path, 'a letter to somebody'.repeat(50)),
    text: 'The token store cannot be used',
  },
  {
    name: 'without the key it was sealed with',
    harm: sealWithKey,
    text: 'TOKEN_STORE_KEY',
    code: MISTAKE,
  },
  {
    name: 'given a key it was not sealed with',
    harm: sealWithKey,
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

async function sealWithKey(path: string): Promise<void> {
  const store = openSqliteStore(path, createSealer([KEY]));
  await store.update((state) => ({ next: state!, result: undefined }));
  await store.close();
}

test.concurrent.each(harms)(
  'a store that is $name is refused with an explanation, and left unchanged',
  async ({ harm, text, extra, code = 1 }) => {
    await using world = await startFaultWorld();
    await harm(world.path);
    const before = world.files();
    expect(await world.commandIn(extra ?? {}, 'serve')).toMatchObject({
      code,
      stderr: expect.stringContaining(text),
    });
    expect(world.files()).toEqual(before);
    expect(world.outcomes()).toEqual([]);
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
  expect((await importing.ended).code).toBe(0);
  expect(await world.holdsTheLastPair()).toBe(true);
});
