import { FRONT_DOOR, startGateway } from '../gateway.ts';
import { startLoad } from '../load.ts';
import { CONNECTIONS, measureInTurn, PAGES, pagesFrom } from '../measure-pages.ts';
import { startDocumented } from '../peers.ts';
import { connectionsOf, pagesOf } from '../persons-pages.ts';
import type { JsonStyle } from '../processes/upstream-process.ts';
import type { Benchmark, Row } from '../report.ts';
import { startUpstream } from '../services.ts';

const ROUNDS = 5;
const OPTIONS = { rounds: ROUNDS, ms: 2_000, warmUpMs: 3_000 };
/** Keys in another order are read value by value, because servers send them in the order of the selection. */
const STYLES: readonly (readonly [style: JsonStyle, atLeast: number])[] = [
  ['pretty', 4],
  ['reversed keys', 1],
];

export const spellings: Benchmark = {
  title: `the pages of a service that writes its JSON otherwise, ${PAGES} pages over ${CONNECTIONS} connections`,
  measure: async () => {
    const rows: Row[] = [];
    for (const [style, atLeast] of STYLES) rows.push(...(await measureStyle(style, atLeast)));
    return [...rows, ...(await measureExtensions())];
  },
};

async function measureStyle(style: JsonStyle, atLeast: number): Promise<Row[]> {
  await using upstream = await startUpstream({ persons: 5_000, style });
  await using load = startLoad();
  await using documented = await startDocumented(upstream);
  await using gateway = await startGateway(upstream, { env: FRONT_DOOR });
  const contenders = {
    documented: await pagesFrom(documented),
    gateway: await pagesFrom(gateway),
  };
  const rounds = await measureInTurn(load, upstream, contenders, OPTIONS);
  return [
    {
      what: `${style}: this gateway`,
      figures: rounds.map((round) => round.gateway.rate),
      unit: 'requests/s',
    },
    {
      what: `${style}: requests/s, of documented stitching`,
      figures: rounds.map((round) => round.gateway.rate / round.documented.rate),
      unit: 'x',
      promise: { atLeast },
    },
  ];
}

/** Compares a service that sends extensions with one that sends none. */
async function measureExtensions(): Promise<Row[]> {
  await using plainUpstream = await startUpstream({ persons: 5_000 });
  await using upstream = await startUpstream({ persons: 5_000, style: 'with extensions' });
  await using load = startLoad();
  await using plain = await startGateway(plainUpstream, { env: FRONT_DOOR });
  await using gateway = await startGateway(upstream, { env: FRONT_DOOR });
  const rows: Row[] = [];
  for (const [what, bodies] of [
    ['pages', pagesOf],
    ['connections', connectionsOf],
  ] as const) {
    const contenders = {
      plain: { server: plain, bodies: await bodies(plain, PAGES) },
      extended: { server: gateway, bodies: await bodies(gateway, PAGES) },
    };
    const rounds = await measureInTurn(load, upstream, contenders, OPTIONS);
    rows.push({
      what: `with extensions: CPU of ${what}, of those without`,
      figures: rounds.map(({ plain: usual, extended }) => extended.cpu / usual.cpu),
      unit: 'x',
      promise: { atMost: 1.15 },
    });
  }
  return rows;
}
