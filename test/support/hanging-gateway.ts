/**
 * A gateway in a process of its own that stops dead at one point of the exchange, so that a test can kill it
 * there. Its parts are the real ones; only the store is wrapped.
 */
import { readFileSync } from 'node:fs';
import process from 'node:process';
import pino from 'pino';
import { systemClock } from '../../src/clock.ts';
import { readConfig } from '../../src/config.ts';
import { createGateway } from '../../src/gateway.ts';
import { listen } from '../../src/http/listen.ts';
import { openRescue } from '../../src/tokens/rescue.ts';
import { createSealer } from '../../src/tokens/seal.ts';
import { openSqliteStore } from '../../src/tokens/sqlite-store.ts';
import type { TokenStore } from '../../src/tokens/token-store.ts';

export type HangingPoint =
  'before the mark' | 'after the mark' | 'before the save' | 'after the save' | 'before it settles';

export interface HangingOptions {
  readonly recruitingUrl: string;
  readonly store: string;
  readonly rescue: string;
  readonly at: HangingPoint;
}

const [options] = process.argv.slice(2).map((text) => JSON.parse(text) as HangingOptions);
if (options) await main(options);

async function main({ recruitingUrl, store: path, rescue, at }: HangingOptions): Promise<void> {
  const log = pino();
  const sealer = createSealer([]);
  const owner = { host: 'test', pid: process.pid, lives: () => true };
  const gateway = await createGateway({
    config: { ...readConfig({}, () => ''), recruitingUrl },
    snapshot: readFileSync('schema/upstream.graphql', 'utf8'),
    store: hanging(openSqliteStore(path, { sealer }), at),
    rescue: openRescue({ directory: rescue, sealer, owner }, log),
    clock: systemClock,
    log,
  });
  const { url } = await listen(gateway.yoga, { host: '127.0.0.1', port: 0 });
  process.stdout.write(`SERVING ${url}/graphql\n`);
}

function hanging(store: TokenStore, at: HangingPoint): TokenStore {
  const reach = (point: HangingPoint): Promise<void> => {
    if (point !== at) return Promise.resolve();
    process.stdout.write(`REACHED ${point}\n`);
    return new Promise(() => {});
  };
  return {
    ...store,
    mark: async (mark) => {
      await reach('before the mark');
      const marked = await store.mark(mark);
      await reach('after the mark');
      return marked;
    },
    save: async (pair) => {
      await reach('before the save');
      const saved = await store.save(pair);
      await reach('after the save');
      return saved;
    },
    settle: async (attempt, ending) => {
      await reach('before it settles');
      await store.settle(attempt, ending);
    },
  };
}
