import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startIssuer, type Issuer } from '../http/auth/issuer.ts';
import { additions, allScopes, keys, peopleSdl, peopleService } from '../schema/people.ts';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { composed } from '../support/supergraph/composition.ts';
import { serveRecorded, type RecordedServer } from '../support/supergraph/recorded-server.ts';
import { startReviews, type ReviewsSubgraph } from '../support/supergraph/reviews-subgraph.ts';
import { startRouter, type Router } from '../support/supergraph/router.ts';

const { schema, mutations } = peopleService();
let issuer: Issuer;
let gateway: GatewayOverService;
let recruiting: RecordedServer;
let reviews: ReviewsSubgraph;
let router: Router;

beforeAll(async () => {
  issuer = await startIssuer();
  gateway = await startGatewayOverService(
    { schema },
    {
      snapshot: peopleSdl,
      overrides: allScopes,
      additions,
      config: { auth: keys, mutations: 'all' },
    },
  );
  recruiting = await serveRecorded((request) => gateway.gateway.handler.fetch(request));
  reviews = await startReviews(['p1', 'p2']);
  const key = { 'x-api-key': 'all' };
  const { data } = await recruiting.ask('{ _service { sdl } }', {}, key);
  const { sdl } = data!['_service'] as { sdl: string };
  router = await startRouter({
    supergraph: composed([{ name: 'recruiting', sdl, url: recruiting.url }, reviews]),
    enforcesScopes: true,
    env: {
      RECRUITING_KEY: 'all',
      JWKS_URI: issuer.jwt.jwksUrl,
      JWT_ISSUER: issuer.jwt.issuer,
      JWT_AUDIENCE: issuer.jwt.audience,
    },
  });
}, 60_000);
afterAll(async () => {
  await router[Symbol.asyncDispose]();
  await reviews[Symbol.asyncDispose]();
  await recruiting[Symbol.asyncDispose]();
  await gateway[Symbol.asyncDispose]();
  await issuer[Symbol.asyncDispose]();
});

const REVIEWS = 'reviewsConnection(first: 1) { edges { node { author';

/** Each way, what it needs, and how it is taken. */
const WAYS: readonly [way: string, scope: 'pii' | 'pay', query: string][] = [
  ['a field', 'pii', '{ me { email } }'],
  ['a field of a derived list', 'pii', '{ allPeople(limit: 1) { email } }'],
  ['a field behind a fragment', 'pii', '{ me { ...F } } fragment F on Person { email }'],
  ['a mutation', 'pii', 'mutation { mail(email: "x") }'],
  ['a field of a mutation', 'pii', 'mutation { rename(id: "p1", name: "x") { email } }'],
  ['a field of a type', 'pay', '{ me { salary { amount } } }'],
  ['a derived list of a type', 'pay', '{ allSalaries { __typename } }'],
  ['the total of a type', 'pay', '{ salariesConnection(first: 1) { totalCount } }'],
  ['a field of an interface', 'pii', '{ named { nick } }'],
  ['a member of a union', 'pay', '{ paid { ... on Salary { amount } } }'],
  ['a field of an entity', 'pii', `{ ${REVIEWS} { email } } } } }`],
  ['an added field that requires a field', 'pii', '{ me { greeting } }'],
  ['an added field with a scope of its own', 'pii', '{ me { badge } }'],
  ['an added root field', 'pay', '{ payday }'],
];

describe('Hive Gateway, configured as documented, whose key has every scope', () => {
  test.each(WAYS)(
    'refuses a client without the scope of %s, and sends nothing',
    async (_, scope, query) => {
      const before = mutations.count;
      for (const headers of [{}, await as(scope === 'pii' ? 'pay' : 'pii')]) {
        recruiting.received.length = 0;
        const { data, errors = [] } = await router.ask(query, {}, headers);
        expect(errors.map(({ extensions }) => extensions['code'])).toContain(
          'UNAUTHORIZED_FIELD_OR_TYPE',
        );
        expect(JSON.stringify(data ?? null)).toBe('null');
        expect(recruiting.received).toEqual([]);
      }
      expect(mutations.count).toBe(before);
    },
  );

  test.each(WAYS)('answers a client with the scope of %s', async (_, scope, query) => {
    const { data, errors } = await router.ask(query, {}, await as(scope));
    expect(errors).toBeUndefined();
    expect(Object.values(data!)).not.toContain(null);
  });

  test('answers a client without a token what needs no scope', async () => {
    const query = `{ me { name initials } paid { __typename ... on Person { name } } ${REVIEWS} { name } } } } }`;
    const { errors, data } = await router.ask(query);
    expect(errors).toBeUndefined();
    expect(data).toMatchObject({ me: { name: 'Ada 1' } });
  });

  test('refuses a client with a token that is not valid', async () => {
    const { errors } = await router.ask('{ me { name } }', {}, { authorization: 'Bearer x' });
    expect(errors).toHaveLength(1);
  });
});

async function as(scope: string) {
  return { authorization: `Bearer ${await issuer.token({ scope: `openid ${scope}` })}` };
}
