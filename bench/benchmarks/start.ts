import process from 'node:process';
import { setTimeout as wait } from 'node:timers/promises';
import { timeToReady } from '../gateway.ts';
import { startBareProxy } from '../peers.ts';
import { residentOf } from '../process-figures.ts';
import type { Benchmark } from '../report.ts';
import { startUpstream, type Service } from '../services.ts';

const ROUNDS = 8;
const MB = 1024 * 1024;

export const start: Benchmark = {
  title: `from the start of the process to 200 on /ready, ${ROUNDS} rounds`,
  measure: async () => {
    await using upstream = await startUpstream({ persons: 50 });
    await fillCompileCache(upstream);
    const rounds = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const store = upstream.tokenStore();
      const service = { ...upstream, tokenStore: () => store };
      const first = await startOnce(service);
      const again = await startOnce(service);
      rounds.push({ first, again, bare: await startBare(upstream) });
    }
    return [
      { what: 'the bare proxy', figures: rounds.map(({ bare }) => bare), unit: 's' },
      {
        what: 'the first start, which imports the tokens',
        figures: rounds.map(({ first }) => first.seconds),
        unit: 's',
      },
      {
        what: 'a later start',
        figures: rounds.map(({ again }) => again.seconds),
        unit: 's',
        promise: { atMost: 0.5 },
      },
      {
        what: 'resident when it is ready',
        figures: rounds.map(({ again }) => again.resident / MB),
        unit: 'MB',
      },
    ];
  },
};

/** A process writes the code that it has compiled when it stops, and not when it is killed. */
async function fillCompileCache(service: Service): Promise<void> {
  const { gateway } = await timeToReady(service);
  await using ended = gateway;
  process.kill(ended.pid, 'SIGTERM');
  while (!ended.hasEnded()) await wait(10);
}

async function startOnce(service: Service): Promise<{ seconds: number; resident: number }> {
  const { seconds, gateway } = await timeToReady(service);
  await using ended = gateway;
  return { seconds, resident: residentOf(ended.pid) };
}

/** Measures how long Node itself takes to start on this machine, with almost nothing loaded. */
async function startBare(service: Service): Promise<number> {
  const begin = performance.now();
  await using _proxy = await startBareProxy(service);
  return (performance.now() - begin) / 1_000;
}
