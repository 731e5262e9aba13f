import { FRONT_DOOR, startGateway, type Server } from '../gateway.ts';
import { startLoad } from '../load.ts';
import { CONNECTIONS, measureInTurn, PAGES, type Contender } from '../measure-pages.ts';
import { startDocumented } from '../peers.ts';
import { bodiesOf } from '../persons-pages.ts';
import type { Benchmark, Row } from '../report.ts';
import { startUpstream } from '../services.ts';

const OPTIONS = { rounds: 5, ms: 1_500, warmUpMs: 3_000 };
const PREFIX = 'Recruiting';

const PAGE_INFO = 'pageInfo { hasNextPage endCursor }';

/** Selections of a page; all use variables. */
const SHAPES = {
  'in fragments': `query ($first: Int, $after: String) { persons(first: $first, after: $after) { ...Page } }
    fragment Page on PersonPage { items { ...Name } ${PAGE_INFO} } fragment Name on Person { id firstName }`,
  'ten fields a record': `query ($first: Int, $after: String) { persons(first: $first, after: $after) {
    items { id ${Array.from({ length: 9 }, (_, at) => `name${at}: firstName`).join(' ')} } ${PAGE_INFO} } }`,
  'the names of types': `query ($first: Int, $after: String) { persons(first: $first, after: $after) {
    __typename items { __typename id firstName } ${PAGE_INFO} } }`,
};
type Shape = keyof typeof SHAPES;

/** A plan may make one form of a query fast and another one slow. */
export const shapes: Benchmark = {
  title: `the page, asked for in other forms, ${PAGES} pages over ${CONNECTIONS} connections`,
  measure: async () => {
    await using upstream = await startUpstream({ persons: 5_000 });
    await using load = startLoad();
    await using documented = await startDocumented(upstream);
    await using gateway = await startGateway(upstream, { env: FRONT_DOOR });
    const env = { ...FRONT_DOOR, SCHEMA_PREFIX: PREFIX };
    await using prefixed = await startGateway(upstream, { env });
    const names = Object.keys(SHAPES) as Shape[];
    const contenders: Record<string, Contender> = {};
    for (const name of names) {
      contenders[`documented ${name}`] = await pageOf(documented, SHAPES[name]);
      contenders[name] = await pageOf(gateway, SHAPES[name]);
    }
    const typed = SHAPES['the names of types'].replace('persons(', 'persons: recruitingPersons(');
    contenders['prefixed'] = await pageOf(prefixed, typed);
    const rounds = await measureInTurn(load, upstream, contenders, OPTIONS);
    const row = (what: string, ours: string, theirs: string): Row => ({
      what: `${what}: requests/s, of documented stitching`,
      figures: rounds.map((round) => round[ours]!.rate / round[theirs]!.rate),
      unit: 'x',
      promise: { atLeast: 7 },
    });
    return [
      ...names.map((name) => row(name, name, `documented ${name}`)),
      row('with a prefix, which renames types', 'prefixed', 'documented the names of types'),
    ];
  },
};

async function pageOf(server: Server, query: string): Promise<Contender> {
  return { server, bodies: await bodiesOf(server, PAGES, query, 'persons') };
}
