import { askPage, timed } from '../ask.ts';
import { startGateway } from '../gateway.ts';
import { startDrains } from '../load.ts';
import { median, type Benchmark } from '../report.ts';
import { startBenchSandbox } from '../services.ts';

const PERSONS = 5_000;
const LATENCY = 20;
const DRAINS = 4;
const ROUNDS = 5;
const REQUESTS = 60;

export const interactive: Benchmark = {
  title: `persons(first: 10) while ${DRAINS} drains of ${PERSONS} persons run all the time, ${LATENCY} ms upstream latency`,
  measure: async () => {
    await using sandbox = await startBenchSandbox({ persons: PERSONS, latency: LATENCY });
    await using gateway = await startGateway(sandbox);
    await measureRound();
    const quiet = await measureRound();
    await using _drains = await startDrains(gateway.endpoint, DRAINS);
    const { requests: before } = await sandbox.tell({ do: 'look' });
    const start = performance.now();
    const rounds = [];
    for (let round = 0; round < ROUNDS; round += 1) rounds.push(await measureRound());
    const seconds = (performance.now() - start) / 1_000;
    const { requests: after } = await sandbox.tell({ do: 'look' });
    return [
      { what: 'pages a second meanwhile', figures: [(after - before) / seconds], unit: '' },
      { what: 'bare, without drains', figures: [quiet.bare], unit: 'ms' },
      { what: 'bare', figures: rounds.map(({ bare }) => bare), unit: 'ms' },
      {
        what: 'through the gateway, without drains',
        figures: [quiet.gateway / quiet.bare],
        unit: 'upstream latencies',
      },
      {
        what: 'through the gateway',
        figures: rounds.map(({ gateway: ours, bare }) => ours / bare),
        unit: 'upstream latencies',
        promise: { atMost: 1.5 },
      },
    ];

    /** Alternates both, so that they run under the same conditions. */
    async function measureRound(): Promise<{ bare: number; gateway: number }> {
      const bare: number[] = [];
      const ours: number[] = [];
      for (let request = 0; request < REQUESTS; request += 1) {
        bare.push(await timed(() => askPage(sandbox, 10)));
        ours.push(await timed(() => askPage(gateway, 10)));
      }
      return { bare: median(bare), gateway: median(ours) };
    }
  },
};
