import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PERSONS } from '../ask.ts';
import { temporaryFolder } from '../child-processes.ts';
import { FRONT_DOOR, keyWith, startGateway, type Server } from '../gateway.ts';
import { startIssuer } from '../issuer.ts';
import { startLoad } from '../load.ts';
import { CONNECTIONS, measureInTurn, pagesFrom, type Contender } from '../measure-pages.ts';
import type { Benchmark, Row } from '../report.ts';
import { startUpstream, type Upstream } from '../services.ts';

const ROUNDS = 6;
const OPEN = { AUTH_API_KEYS: '', ALLOW_ANONYMOUS: 'true' };
const NO_BUDGET = { PAGES_PER_MINUTE: '0' };
const NO_LINES = { LOG_LEVEL: 'warn' };

const SCOPES = { AUTH_API_KEYS: keyWith('read') };

/**
 * The checks that each gateway lacks or adds. Limits of sizes, host names and metrics cannot be switched off.
 * Nor can the limits of operations: they are checked once for each text, so never during the measurement.
 */
const variants = {
  'without API keys': OPEN,
  'without a budget of pages': NO_BUDGET,
  'without a line of log for each request': NO_LINES,
  'without all three': { ...OPEN, ...NO_BUDGET, ...NO_LINES },
  'with a key that may only read': SCOPES,
} satisfies Record<string, Record<string, string>>;
const TRUSTED = 'with trusted documents, asked for by id';
const ORIGIN = 'with CORS, asked from an allowed origin';
const OTHER_SITE = 'with CORS, asked from an allowed origin of another site';

export const checks: Benchmark = {
  title: `what the checks of the front door cost of a page, ${CONNECTIONS} connections, ${ROUNDS} rounds`,
  measure: async () => {
    await using upstream = await startUpstream({ persons: 5_000 });
    await using load = startLoad();
    await using issuer = await startIssuer();
    await using started = new AsyncDisposableStack();
    const gateway = async (env: Record<string, string>) =>
      started.use(await startAnother(upstream, env));
    const everything = await pagesFrom(await gateway({}));
    const contenders: Record<string, Contender> = { everything };
    for (const [name, env] of Object.entries(variants)) {
      contenders[name] = await pagesFrom(await gateway(env));
    }
    contenders[TRUSTED] = byId(await gateway({ TRUSTED_DOCUMENTS: manifest() }), everything);
    const origin = 'https://app.example.com';
    const cors = await gateway({ CORS_ORIGINS: origin });
    const ofPage = { ...cors.headers, origin };
    contenders[ORIGIN] = await pagesFrom({ ...cors, headers: ofPage });
    const ofOtherSite = { ...ofPage, 'sec-fetch-site': 'cross-site' };
    contenders[OTHER_SITE] = await pagesFrom({ ...cors, headers: ofOtherSite });
    const jwts = await gateway({ AUTH_API_KEYS: '', ...issuer.env });
    for (const [algorithm, token] of issuer.tokens) {
      const headers = { authorization: `Bearer ${token}` };
      contenders[`with a JWT by ${algorithm}, and no API key`] = await pagesFrom({
        ...jwts,
        headers,
      });
    }
    const options = { rounds: ROUNDS, ms: 1_500, warmUpMs: 2_500 };
    const rounds = await measureInTurn(load, upstream, contenders, options);
    const all = rounds.map((round) => round['everything']!);
    return [
      { what: 'everything on', figures: all.map(({ rate }) => rate), unit: 'requests/s' },
      { what: 'everything on: CPU of a request', figures: all.map(({ cpu }) => cpu), unit: 'us' },
      ...Object.keys(contenders)
        .filter((name) => name !== 'everything')
        .flatMap((name): Row[] => [
          {
            what: `${name}: CPU of a request`,
            figures: rounds.map((round) => round[name]!.cpu / round['everything']!.cpu),
            unit: 'x',
          },
          {
            what: `${name}: requests/s`,
            figures: rounds.map((round) => round[name]!.rate / round['everything']!.rate),
            unit: 'x',
          },
        ]),
    ];
  },
};

async function startAnother(upstream: Upstream, different: Record<string, string>) {
  const all = Object.entries({ ...FRONT_DOOR, ...different });
  const env = Object.fromEntries(all.filter(([, value]) => value !== ''));
  return await startGateway(upstream, { env });
}

const documentId = createHash('sha256').update(PERSONS).digest('hex');

function manifest(): string {
  const file = join(temporaryFolder(), 'operations.json');
  writeFileSync(file, JSON.stringify({ [documentId]: PERSONS }));
  return file;
}

function byId(server: Server, { bodies }: Contender): Contender {
  const pages = bodies.map((body) => {
    const { variables } = JSON.parse(body) as { variables: Record<string, unknown> };
    return JSON.stringify({ documentId, variables });
  });
  return { server, bodies: pages };
}
