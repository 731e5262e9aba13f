/**
 * A gateway in a process of its own that stops at one point of the exchange, so that a test can kill it there
 * or let it continue. Its parts and settings are the real ones; only its store and its clock are wrapped. Lines on
 * its standard input control it: `go` (continue) and `later <ms>` (its clock jumps ahead).
 */
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { createInterface } from 'node:readline';
import pino from 'pino';
import { systemClock, type Clock } from '../../../src/clock.ts';
import { emergencyFor, keeperParts, openTokenStore } from '../../../src/setup/custody.ts';
import { thisMachine } from '../../../src/setup/machine.ts';
import { readConfig } from '../../../src/config.ts';
import { createGateway } from '../../../src/gateway.ts';
import { listen } from '../../../src/http/listen.ts';
import type { State } from '../../../src/tokens/state.ts';
import type { TokenStore } from '../../../src/tokens/store.ts';

export type HangingPoint =
  'before the claim' | 'after the claim' | 'before the save' | 'after the save';

export interface HangingOptions {
  /** Nowhere, if it is missing. */
  readonly at?: HangingPoint | undefined;
}

const [options] = process.argv.slice(2).map((text) => JSON.parse(text) as HangingOptions);
if (options) await main(options);

async function main({ at }: HangingOptions) {
  let later = 0;
  const gone = Promise.withResolvers<void>();
  const lines = createInterface({ input: process.stdin });
  lines.on('line', (line) => {
    const [word, value] = line.split(' ');
    if (word === 'go') gone.resolve();
    else later += Number(value);
    process.stdout.write(`TOLD ${line}\n`);
  });
  const reach = async (point: HangingPoint) => {
    if (point !== at) return;
    process.stdout.write(`REACHED ${point}\n`);
    await gone.promise;
  };
  const clock: Clock = {
    ...systemClock,
    elapsed: () => systemClock.elapsed() + later,
  };
  // The same parts as in src/cli/serve.ts.
  const asked = Promise.withResolvers<void>();
  process.on('SIGTERM', () => asked.resolve());
  const alive = setInterval(() => {}, 2 ** 30);
  const log = pino();
  const configured = readConfig(process.env, () => '');
  const config = { ...configured, recruitingUrl: configured.recruitingUrl! };
  const store = openTokenStore(config.tokenStore, config);
  const gateway = await createGateway({
    config,
    snapshot: readFileSync('schema/upstream.graphql', 'utf8'),
    tokens: keeperParts(config, {
      store: wrapped(store, reach),
      emergency: emergencyFor(config),
      machine: { ...thisMachine, env: {}, clock },
      log,
    }),
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
  await store.close();
  lines.close();
  process.stdin.destroy();
  clearInterval(alive);
}

function wrapped(store: TokenStore, reach: (point: HangingPoint) => Promise<void>): TokenStore {
  return {
    ...store,
    update: async (rule) => {
      const { state: before, now } = await store.read();
      const kind = kindOf(before, rule(before, now).next);
      if (kind === 'claim') await reach('before the claim');
      if (kind === 'save') await reach('before the save');
      const result = await store.update(rule);
      if (kind === 'claim') await reach('after the claim');
      if (kind === 'save') await reach('after the save');
      return result;
    },
  };
}

function kindOf(before: State | null, next: State | undefined): 'claim' | 'save' | undefined {
  if (!next) return undefined;
  const [event] = next.events;
  if (event !== before?.events[0]) return event?.what === 'saved' ? 'save' : undefined;
  return next.claim?.attempt === before?.claim?.attempt ? undefined : 'claim';
}
