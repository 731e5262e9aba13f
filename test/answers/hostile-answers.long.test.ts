import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { fullSdl, fullService } from '../service/full.ts';
import { honest } from '../service/replies.ts';
import { ask as askFor, partsOf, type Payload } from '../support/clients/multipart.ts';
import { hostile } from './hostile-bytes.ts';
import { randomRuns } from '../support/random/random-runs.ts';

const RUNS = randomRuns(200);
const PEOPLE = [1, 7, 3].map((id) => `{ __typename: "Candidate", id: ${id} }`).join(' ');
const RECORD =
  '__typename id name stage appliedAt extra score rank friends { id } vacancy { title }';

const QUERIES = [
  `{ me { __typename id ... on Candidate { ${RECORD} } } other: failing }`,
  `{ activeCandidates(first: 3) { items { ${RECORD} } pageInfo { hasNextPage endCursor } } }`,
  `{ allCandidates(limit: 40) { ${RECORD} } }`,
  '{ applicants(first: 5) { items { __typename ... on Robot { model } ... on Candidate { id } } } }',
  `{ c: candidatesConnection(first: 35) { edges { n: node { ${RECORD} } } pageInfo { hasNextPage } } }`,
  '{ applicantsConnection(last: 5) { nodes { __typename } pageInfo { hasPreviousPage } } }',
  '{ openings(first: 3) { items { id candidates { items { id rank history { items { at } } } } } } }',
  `{ _entities(representations: [${PEOPLE}]) { ... on Candidate { id rank extra } } }`,
  '{ allActiveCandidates @stream(initialCount: 2) { id rank extra } }',
  'mutation { rename(id: 3, name: "Candidate 3") { id name score } }',
  '{ __proto__: me { constructor: id toString: __typename } }',
];

/** The longest pause of the circuit breaker. */
const LONGEST_PAUSE_MS = 30_000;

const OURS = new Set<unknown>([
  'UPSTREAM_UNREACHABLE',
  'UPSTREAM_TIMEOUT',
  'UPSTREAM_BAD_RESPONSE',
  'UPSTREAM_RATE_LIMITED',
  'UPSTREAM_UNAUTHORIZED',
  'DRAIN_LIMIT_EXCEEDED',
  'DRAIN_STALLED',
  'DRAIN_INTERRUPTED',
  'CURSOR_INVALID',
]);

const strays: unknown[] = [];
const noteStray = (error: unknown) => strays.push(error);
process.on('unhandledRejection', noteStray).on('uncaughtExceptionMonitor', noteStray);
afterAll(() => {
  process.off('unhandledRejection', noteStray).off('uncaughtExceptionMonitor', noteStray);
});

test('whatever the service answers, callers get an answer with known codes and without secrets, and other callers are not affected', async () => {
  const { schema } = fullService();
  await using gateway = await startGatewayOverService(
    { schema },
    {
      snapshot: fullSdl,
      config: { mutations: 'all', drainMaxItems: 400, connectionMax: 60 },
    },
  );
  const truths = new Map<string, Answer>();
  for (const query of QUERIES) truths.set(query, await ask(gateway, query));
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...QUERIES), hostile(), async (query, reply) => {
      gateway.service.answer(reply);
      expectHarmless(await ask(gateway, query), gateway);
      gateway.service.answer(honest);
      // The circuit breaker may be open now: after a pause a probe is sent, and then all requests.
      gateway.age(LONGEST_PAUSE_MS);
      await ask(gateway, '{ me { __typename } }');
      expect((await ask(gateway, query)).payloads).toEqual(truths.get(query)!.payloads);
    }),
    { numRuns: RUNS, interruptAfterTimeLimit: 3_000_000, timeout: 20_000 },
  );
  const secrets = gateway.service.received.map(({ token }) => token);
  const written = JSON.stringify(gateway.logged) + (await gateway.gateway.metrics.text());
  for (const secret of new Set(secrets)) expect(written).not.toContain(secret);
  // Answers that cannot be used are reported to the operator; nothing else may be logged as an error.
  const logged = gateway.logged.filter(
    ({ level, msg, trouble }) =>
      Number(level) >= 50 &&
      trouble !== 'unauthorized' &&
      !String(msg).includes('temporarily unavailable'),
  );
  expect(logged).toEqual([]);
  expect({}).not.toHaveProperty('spoilt');
  expect(strays).toEqual([]);
}, 3_600_000);

interface Answer {
  readonly response: Response;
  readonly written: string;
  readonly payloads: readonly Payload[];
}

async function ask(gateway: GatewayOverService, query: string): Promise<Answer> {
  const accept = query.includes('@') ? 'multipart/mixed' : 'application/json';
  const response = await askFor(gateway, query, {}, accept);
  const written = await response.text();
  const payloads = await Array.fromAsync(partsOf(new Response(written, response)));
  return { response, written, payloads };
}

function expectHarmless(
  { response, written, payloads }: Answer,
  { service, logged }: GatewayOverService,
): void {
  expect(response.status).toBe(200);
  expect(response.headers.get('x-spoilt')).toBeNull();
  expect(response.headers.get('www-authenticate')).toBeNull();
  const { token } = service.received.at(-1)!;
  expect(written).not.toContain(token);
  expect(written).not.toContain(new URL(service.url).host);
  expect(written).not.toMatch(/node_modules|\.ts:\d/);
  const parts = payloads.flatMap(({ incremental = [], ...first }) => [first, ...incremental]);
  // `errors: null` is passed on, and is not an error.
  for (const error of parts.flatMap(({ errors }) => errors ?? [])) {
    const { code, id } = error.extensions ?? {};
    expect(error.message).toEqual(expect.any(String));
    // The gateway's errors always have a code; an error without one, or with another one, is the service's.
    const unexpected = logged.find(({ errorId }) => errorId !== undefined && errorId === id);
    expect(code === 'INTERNAL_SERVER_ERROR' && unexpected).toBeFalsy();
    expect(error.message).not.toMatch(/inside the gateway|call stack|undefined|Cannot read/);
    // An error of the service that imitates a code of the gateway has no path if it names none; its messages are short.
    const isOfNoPlace = error.message.length < 45 || /reported \d+ more errors/.test(error.message);
    if (OURS.has(code) && !isOfNoPlace) expect(error.path, JSON.stringify(error)).toBeDefined();
  }
}
