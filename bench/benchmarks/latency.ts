import { FRONT_DOOR, startGateway } from '../gateway.ts';
import { startLoad } from '../load.ts';
import { CONNECTIONS, measureInTurn, pagesFrom } from '../measure-pages.ts';
import { startHive } from '../peers.ts';
import type { Pressed } from '../processes/load-process.ts';
import { median, type Benchmark } from '../report.ts';
import { startUpstream } from '../services.ts';

const ROUNDS = 5;
const ROUND_MS = 4_000;

export const latency: Benchmark = {
  title: `how long a page takes at half of the rate that Hive Gateway can keep, ${ROUNDS} rounds`,
  measure: async () => {
    await using upstream = await startUpstream({ persons: 5_000 });
    await using load = startLoad();
    await using hive = await startHive(upstream);
    await using gateway = await startGateway(upstream, { env: FRONT_DOOR });
    const contenders = { hive: await pagesFrom(hive), gateway: await pagesFrom(gateway) };
    const pressed = await measureInTurn(load, upstream, contenders, {
      rounds: 3,
      ms: 2_000,
      warmUpMs: 3_000,
    });
    const perSecond = Math.round(median(pressed.map((round) => round.hive.rate)) / 2);
    const rounds: Record<keyof typeof contenders, Pressed>[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const pace = async (name: keyof typeof contenders) => {
        const { server, bodies } = contenders[name];
        const { endpoint, headers } = server;
        const to = { endpoint, headers, bodies, connections: CONNECTIONS };
        return await load.keepPace({ ...to, perSecond, ms: ROUND_MS });
      };
      rounds.push({ hive: await pace('hive'), gateway: await pace('gateway') });
    }
    const figures = (name: keyof typeof contenders, part: keyof Pressed['latency']) =>
      rounds.map((round) => round[name].latency[part]);
    return [
      { what: 'the rate', figures: [perSecond], unit: 'requests/s' },
      { what: 'Hive Gateway: median', figures: figures('hive', 'median'), unit: 'ms' },
      { what: 'Hive Gateway: p99', figures: figures('hive', 'p99'), unit: 'ms' },
      { what: 'this gateway: median', figures: figures('gateway', 'median'), unit: 'ms' },
      { what: 'this gateway: p99', figures: figures('gateway', 'p99'), unit: 'ms' },
      {
        what: 'p99, of Hive Gateway',
        figures: rounds.map((round) => round.gateway.latency.p99 / round.hive.latency.p99),
        unit: 'x',
      },
    ];
  },
};
