import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pino from 'pino';
import { expect } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { startService } from '../../service/service.ts';
import { authCheck } from '../../../src/tokens/service/auth-check.ts';
import { tokenEndpoint } from '../../../src/tokens/service/exchange.ts';
import { openPostgresStore } from '../../../src/tokens/store/postgres/postgres-store.ts';
import { openRescue } from '../../../src/tokens/store/rescue.ts';
import { unsealed } from '../../../src/tokens/store/sealed-file.ts';
import { createSealer } from '../../../src/tokens/store/seal.ts';
import { createTokenKeeper } from '../../../src/tokens/token-keeper.ts';
import { readTokenSet } from '../../../src/tokens/token-set.ts';
import { runHere } from '../gateway/run-here.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { eventually, keySetting } from '../tokens/fault-world.ts';
import type { PostgresServer } from './server.ts';

export type Place = 'store' | 'rescue file';

/** The token keeper of a gateway on its own machine, run in the process of the test. */
export interface Replica {
  /** SIGTERM. */
  stop(): Promise<void>;
  /** kill -9: what it does afterwards has no effect. */
  kill(): void;
  /** Starts another replica on the same machine, or returns why it does not start. */
  restart(): Promise<Replica | { refused: string }>;
  /** Waits until it has looked at the store, and the newest pair is there. */
  notices(where: Place): Promise<void>;
  /** Where the newest pair is: in the store as a start reads it, or in the rescue file of this machine. */
  place(): Promise<Place | 'nowhere'>;
  /** Waits until its rescue file is empty. */
  settles(): Promise<void>;
  /** Meets an expired token. Resolves when the next pair is in use, saved or not. */
  receive(): Promise<void>;
  /** Does the same, and waits until the pair is saved. */
  refresh(): Promise<void>;
}

const KEY = Buffer.alloc(32, 7);
const sealer = createSealer([KEY]);

/**
 * A service, a store at generation 3 and replicas on it. At the end, tokens may appear in no log, output or history.
 */
export async function startDamagedWorld(server: PostgresServer, address?: string) {
  const ends = new AsyncDisposableStack();
  const sandbox = ends.adopt(await startService({ persons: 1 }), (it) => it.close());
  const folder = ends.use(temporaryFolder());
  const url = address ?? (await server.emptyStore());
  const said: string[] = [];
  const secrets = new Set<string>([new URL(url).password]);
  const log = pino({ level: 'debug' }, { write: (line) => void said.push(line) });
  let pids = 0;
  /** The access token of the newest pair. */
  let newest = '';

  const open = (readOnly = false) =>
    openPostgresStore(url, { sealer, clock: systemClock, readOnly });

  async function start(directory: string): Promise<Replica> {
    const store = open();
    mkdirSync(directory, { recursive: true });
    const owner = { host: 'test', pid: (pids += 1), lives: () => false };
    const rescue = openRescue({ directory, sealer, owner }, log);
    const { clock, hurry } = clockThatHurries();
    const service = { baseUrl: sandbox.url, agent: 'test', proxy: undefined };
    const end = async () => {
      await rescue.close();
      await store.close();
    };
    const keeper = await createTokenKeeper({
      store,
      rescue,
      connect: tokenEndpoint({ ...service, clock }),
      checkAccess: authCheck(service),
      clock,
      log,
      link: undefined,
      baseUrl: sandbox.url,
      replica: directory,
    }).catch(async (error: unknown) => {
      await end();
      throw error;
    });
    let ended: Promise<void> | undefined;
    const stop = () => {
      // The keeper tries for five seconds to save a pair.
      hurry();
      return (ended ??= keeper.stop().then(end));
    };
    ends.defer(() => stop());

    const receive = async () => {
      // A process asks all others for their news before its first claim, and waits two seconds for answers.
      hurry();
      const token = await keeper.accessToken();
      keeper.accepted(token);
      const next = await keeper.afterRefusal(token, 'token_expired');
      newest = next!.value;
      secrets.add(newest);
    };
    const place = async () => {
      const looker = open(true);
      const stored = await looker.read().catch(() => null);
      await looker.close();
      if (stored?.pair.accessToken === newest) return 'store';
      return rescuedIn(directory).includes(newest) ? 'rescue file' : 'nowhere';
    };
    return {
      stop,
      kill: () => {
        clock.sleep = () => new Promise(() => {});
        store.save = store.read = () => new Promise(() => {}) as never;
        rescue.put = rescue.clear = () => {};
        ended = store.close();
      },
      restart: () => start(directory).catch(({ message }: Error) => ({ refused: message })),
      place,
      notices: (where) => {
        let looks = 0;
        return eventually(async () => {
          // Not each time, because the notice makes every replica of every world look at its store.
          if (looks % 10 === 0) await server.query('NOTIFY recruiting_tokens');
          looks += 1;
          // Cheaper than a look at the store.
          if (where === 'rescue file') expect(rescuedIn(directory)).toContain(newest);
          expect(await place()).toBe(where);
        });
      },
      receive,
      settles: () => eventually(() => expect(rescuedIn(directory)).toEqual([])),
      refresh: async () => {
        await receive();
        // A save may take longer than the second that a request waits for it.
        await eventually(async () => {
          const { pair } = (await store.read())!;
          expect(pair.accessToken).toBe(newest);
          secrets.add(pair.refreshToken);
        });
      },
    };
  }

  const first = open();
  await first.read();
  const pair = readTokenSet(await (await fetch(sandbox.tokenLink)).json())!;
  await first.import({ baseUrl: sandbox.url, pair, replica: 'test', after: null });
  await first.close();
  const founder = await start(folder.file('founder'));
  await founder.refresh();
  await founder.refresh();
  await founder.stop();

  return {
    [Symbol.asyncDispose]: async () => {
      const store = open(true);
      said.push(JSON.stringify(await store.history(100).catch(() => [])));
      await store.close();
      await ends.disposeAsync();
      for (const { refreshToken } of sandbox.exchanges) secrets.add(refreshToken);
      for (const secret of secrets) expect(said.join('\n')).not.toContain(secret);
    },
    url,
    /** Replicas that run, and listen for changes of the store. */
    gateways: async (count: number): Promise<readonly Replica[]> => {
      const names = Array.from({ length: count }, (_, index) => folder.file(`machine-${index}`));
      const started = await Promise.all(names.map(start));
      const role = new URL(url).username;
      const listening = `SELECT 1 FROM pg_stat_activity WHERE query ~ '^LISTEN' AND usename = '${role}'`;
      await eventually(async () => expect(await server.query(listening)).toHaveLength(count));
      return started;
    },
    /** Runs a `tokens` command on the machine with this number. */
    tokens: async (machine: number, ...args: string[]) => {
      const exit = await runHere(['tokens', ...args], {
        TOKEN_STORE: url,
        RECRUITING_URL: sandbox.url,
        TOKEN_RESCUE_DIR: folder.file(`machine-${machine}`),
        TOKEN_STORE_KEY: keySetting(KEY),
      });
      said.push(exit.stdout, exit.stderr);
      return exit;
    },
    /** Keeps the answer to the next exchange until it is released. */
    holdAnswer: () => sandbox.tokenAnswers.hold('after'),
    unreadLink: `${sandbox.url}/token_links/unread`,
    /** An administrator makes a new token. Returns its link. */
    makeNewSet: () => sandbox.makeNewSet(),
    /** How the exchanges ended for the service. */
    outcomes: () => sandbox.exchanges.map(({ outcome }) => outcome),
    /** What was logged as fatal, and after that. */
    alarms: () => said.filter((line) => line.includes('"level":60')).join('\n'),
  };
}

/** A clock that is five times as fast once it hurries. */
function clockThatHurries() {
  let factor = 1;
  let from = systemClock.elapsed();
  let at = from;
  const elapsed = () => at + (systemClock.elapsed() - from) * factor;
  return {
    clock: {
      ...systemClock,
      elapsed,
      sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms / factor, signal),
    },
    hurry: () => {
      if (factor === 5) return;
      [at, from] = [elapsed(), systemClock.elapsed()];
      factor = 5;
    },
  };
}

function rescuedIn(directory: string): string[] {
  return readdirSync(directory)
    .filter((name) => name.startsWith('rescue-'))
    .map((name) => readFileSync(join(directory, name), 'utf8').trim())
    .filter((text) => text !== '')
    .map((text) => unsealed('rescue', text, sealer).pair.accessToken);
}
