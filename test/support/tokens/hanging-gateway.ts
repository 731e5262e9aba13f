/**
 * A gateway in a process of its own that stops at one point of the exchange, so that a test can kill it there
 * or let it continue. Its parts and settings are the real ones; only its store and its clock are wrapped. Lines on
 * its standard input control it: `go` (continue), `fail` and `mend` (saving fails, and works again),
 * `later <ms>` (its clock jumps ahead).
 */
import { readFileSync, writeSync } from 'node:fs';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import pino from 'pino';
import { systemClock, type Clock } from '../../../src/clock.ts';
import { openStore, rescueFolder } from '../../../src/setup/token-store.ts';
import { readConfig } from '../../../src/config.ts';
import { createGateway } from '../../../src/gateway.ts';
import { listen } from '../../../src/http/listen.ts';
import { openRescue } from '../../../src/tokens/store/rescue.ts';
import type { TokenStore } from '../../../src/tokens/store/token-store.ts';

export type HangingPoint =
  | 'before the claim'
  /** The point where it sends itself SIGSTOP. */
  | 'within the transaction of the claim'
  | 'after the claim'
  | 'before the save'
  | 'after the save'
  | 'before it records the ending';

export interface HangingOptions {
  /** Nowhere, if it is missing. */
  readonly at?: HangingPoint | undefined;
  /** Saving fails from the start. */
  readonly fails?: boolean | undefined;
}

const [options] = process.argv.slice(2).map((text) => JSON.parse(text) as HangingOptions);
if (options) await main(options);

async function main({ at, fails }: HangingOptions) {
  const state = { fails: fails === true, later: 0 };
  const gone = Promise.withResolvers<void>();
  const lines = createInterface({ input: process.stdin });
  lines.on('line', (line) => {
    const [word, value] = line.split(' ');
    if (word === 'go') gone.resolve();
    else if (word === 'later') state.later += Number(value);
    else state.fails = word === 'fail';
    process.stdout.write(`TOLD ${line}\n`);
  });
  const reach = async (point: HangingPoint) => {
    if (point !== at) return;
    process.stdout.write(`REACHED ${point}\n`);
    await gone.promise;
  };
  const clock: Clock = {
    ...systemClock,
    elapsed: () => systemClock.elapsed() + state.later,
  };
  // The same parts as in src/cli/serve.ts.
  const asked = Promise.withResolvers<void>();
  process.on('SIGTERM', () => asked.resolve());
  const alive = setInterval(() => {}, 2 ** 30);
  const log = pino();
  const owner = { host: 'test', pid: process.pid, lives: () => true };
  const config = readConfig(process.env, () => '');
  const store = openStore(config.tokenStore, config);
  const rescue = openRescue(rescueFolder(config, owner), log);
  const gateway = await createGateway({
    config: { ...config, recruitingUrl: config.recruitingUrl! },
    snapshot: readFileSync('schema/upstream.graphql', 'utf8'),
    store: wrapped(store, reach, state, at),
    rescue,
    clock,
    log,
  });
  const server = await listen(gateway.handler, { host: '127.0.0.1', port: 0 });
  process.stdout.write(`SERVING ${server.url}/graphql\n`);
  await asked.promise;
  process.stdout.write('STOPPING\n');
  gateway.stopRefreshing();
  await server.close();
  await gateway.close();
  await rescue.close();
  await store.close();
  lines.close();
  process.stdin.destroy();
  clearInterval(alive);
}

function wrapped(
  store: TokenStore,
  reach: (point: HangingPoint) => Promise<void>,
  state: { readonly fails: boolean },
  at: HangingPoint | undefined,
): TokenStore {
  return {
    ...store,
    claim: async (claim) => {
      await reach('before the claim');
      if (at === 'within the transaction of the claim') stopAtCommit();
      const claimed = await store.claim(claim);
      await reach('after the claim');
      return claimed;
    },
    save: async (pair) => {
      await reach('before the save');
      if (state.fails) throw new Error('this save is made to fail');
      const saved = await store.save(pair);
      await reach('after the save');
      return saved;
    },
    endAttempt: async (attempt, ending) => {
      await reach('before it records the ending');
      await store.endAttempt(attempt, ending);
    },
  };
}

/** Once: the next transaction is committed only after this process was woken. */
function stopAtCommit(): void {
  const { exec } = DatabaseSync.prototype;
  DatabaseSync.prototype.exec = function (statements) {
    if (statements === 'COMMIT') {
      DatabaseSync.prototype.exec = exec;
      writeSync(1, 'REACHED within the transaction of the claim\n');
      process.kill(process.pid, 'SIGSTOP');
    }
    exec.call(this, statements);
  };
}
