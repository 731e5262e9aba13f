import { FRONT_DOOR, startGateway } from '../gateway.ts';
import { startLoad } from '../load.ts';
import {
  CONNECTIONS,
  measureInTurn,
  PAGES,
  pagesFrom,
  type PageFigures,
} from '../measure-pages.ts';
import { startBareProxy, startDocumented, startHive } from '../peers.ts';
import { connectionsOf } from '../persons-pages.ts';
import { peakOf, watchPeak } from '../process-figures.ts';
import type { Benchmark, Row } from '../report.ts';
import { startUpstream } from '../services.ts';

const ROUNDS = 6;
const ROUND_MS = 2_000;
const WARM_UP_MS = 4_000;
const MB = 1024 * 1024;

export const pages: Benchmark = {
  title: `persons(first: 50), ${PAGES} different pages in turn over ${CONNECTIONS} connections, no upstream latency`,
  measure: async () => {
    await using upstream = await startUpstream({ persons: 5_000 });
    await using load = startLoad();
    await using proxy = await startBareProxy(upstream);
    await using documented = await startDocumented(upstream);
    await using hive = await startHive(upstream);
    await using gateway = await startGateway(upstream, { env: FRONT_DOOR });
    // A process for each, so that the memory of one kind of answer does not count for the other.
    await using connections = await startGateway(upstream, { env: FRONT_DOOR });
    const contenders = {
      upstream: await pagesFrom({ ...upstream, headers: {} }),
      proxy: await pagesFrom(proxy),
      documented: await pagesFrom(documented),
      hive: await pagesFrom(hive),
      gateway: await pagesFrom(gateway),
      connection: { server: connections, bodies: await connectionsOf(connections, PAGES) },
    };
    const options = { ms: ROUND_MS, warmUpMs: WARM_UP_MS };
    watchPeak(gateway.pid);
    watchPeak(connections.pid);
    const rounds = await measureInTurn(load, upstream, contenders, { ...options, rounds: ROUNDS });
    return [...rowsOf(rounds), ...memory(peakOf(gateway.pid), peakOf(connections.pid))];
  },
};

type Name = 'upstream' | 'proxy' | 'documented' | 'hive' | 'gateway' | 'connection';

const NAMES: Record<Name, string> = {
  upstream: 'the bare upstream',
  proxy: 'the bare proxy',
  documented: 'documented stitching',
  hive: 'Hive Gateway',
  gateway: 'this gateway',
  connection: 'this gateway, personsConnection(first: 50)',
};

function rowsOf(rounds: readonly Record<Name, PageFigures>[]): Row[] {
  const names = Object.keys(NAMES) as Name[];
  const each = (name: Name, figure: keyof PageFigures) =>
    rounds.map((round) => round[name][figure]);
  const ratio = (above: Name, below: Name, figure: keyof PageFigures) =>
    rounds.map((round) => round[above][figure] / round[below][figure]);
  return [
    ...names.map((name) => ({
      what: NAMES[name],
      figures: each(name, 'rate'),
      unit: 'requests/s',
    })),
    ...names.map((name) => ({
      what: `${NAMES[name]}: CPU of a request`,
      figures: each(name, 'cpu'),
      unit: 'us',
    })),
    {
      what: 'upstream requests of a request',
      figures: each('gateway', 'upstreamRequests'),
      unit: '',
    },
    {
      what: 'upstream requests of a connection',
      figures: each('connection', 'upstreamRequests'),
      unit: '',
    },
    {
      what: 'a page: requests/s, of documented stitching',
      figures: ratio('gateway', 'documented', 'rate'),
      unit: 'x',
      promise: { atLeast: 7 },
    },
    {
      what: 'a page: requests/s, of Hive Gateway',
      figures: ratio('gateway', 'hive', 'rate'),
      unit: 'x',
      promise: { atLeast: 3.5 },
    },
    {
      what: 'a page: CPU, of Hive Gateway',
      figures: ratio('gateway', 'hive', 'cpu'),
      unit: 'x',
    },
    {
      what: 'a page: CPU, of the bare proxy',
      figures: ratio('gateway', 'proxy', 'cpu'),
      unit: 'x',
      promise: { atMost: 1.7 },
    },
    {
      what: 'a connection: requests/s, of the page',
      figures: ratio('connection', 'gateway', 'rate'),
      unit: 'x',
      promise: { atLeast: 0.4 },
    },
  ];
}

function memory(ofPages: number, ofConnections: number): Row[] {
  return [
    {
      what: 'resident memory at full load of pages',
      figures: [ofPages / MB],
      unit: 'MB',
      promise: { atMost: 200 },
    },
    {
      what: 'resident memory at full load of connections',
      figures: [ofConnections / MB],
      unit: 'MB',
    },
  ];
}
