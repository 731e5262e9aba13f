/** A real Hive Gateway, configured as documented, before a gateway with scopes of fields. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startIssuer, type Issuer } from '../http/auth/issuer.ts';
import { startPeople } from '../additions/people.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { composed } from '../support/supergraph/composition.ts';
import { serveRecorded, type RecordedServer } from '../support/supergraph/recorded-server.ts';
import { startRouter, type Router } from '../support/supergraph/router.ts';
import { startReviews } from '../support/supergraph/subgraphs.ts';

const KEY = 'key-of-the-router';
const PII = { scope: 'pii' };
const overrides = {
  fields: { 'Person.email': PII, 'Person.nick': PII, 'Mutation.mail': PII },
  types: { Robot: { scope: 'pay' } },
};

let issuer: Issuer;
let recruiting: RecordedServer;
let reviews: Awaited<ReturnType<typeof startReviews>>;
let router: Router;
const started = new AsyncDisposableStack();
beforeAll(async () => {
  issuer = started.use(await startIssuer());
  const key = entryFor(KEY, 'router', 'read', 'drain', 'write', 'router', 'pii', 'pay');
  const config = { auth: { apiKeys: [key], jwt: undefined } };
  const { gateway } = started.use(await startPeople({}, { overrides, config }));
  recruiting = started.use(await serveRecorded((request) => gateway.handler.fetch(request)));
  reviews = started.use(await startReviews(['1', '2']));
  const { data } = await recruiting.ask('{ _service { sdl } }', {}, { 'x-api-key': KEY });
  const { sdl } = data!['_service'] as { sdl: string };
  router = started.use(
    await startRouter(composed([{ name: 'recruiting', sdl, url: recruiting.url }, reviews]), {
      ROUTER_KEY: KEY,
      JWKS_URI: issuer.jwt.jwksUrl,
      JWT_ISSUER: issuer.jwt.issuer,
      JWT_AUDIENCE: issuer.jwt.audience,
    }),
  );
});
afterAll(() => started.disposeAsync());
beforeEach(() => {
  recruiting.received.length = 0;
});

const as = async (scope: string) => ({
  authorization: `Bearer ${await issuer.token({ scope: `openid ${scope}` })}`,
});
const REVIEWS = 'reviewsConnection(first: 1) { edges { node { author';

test.each([
  ['a field of a derived list', 'pii', '{ allPersons(limit: 1) { email } }'],
  ['a mutation', 'pii', 'mutation { mail(to: "x") }'],
  ['the total of a type', 'pay', '{ robotsConnection(first: 1) { totalCount } }'],
  ['a field of an interface', 'pii pay', '{ anyone { nick } }'],
  ['a field of an entity', 'pii', `{ ${REVIEWS} { email } } } } }`],
  ['an added field that requires a field', 'pii', '{ me { contact } }'],
])(
  'the router answers %s to clients with its scope, and refuses others',
  async (_, scope, query) => {
    for (const headers of [{}, await as(scope === 'pii' ? 'pay' : 'pii')]) {
      const { data, errors = [] } = await router.ask(query, {}, headers);
      const codes = errors.map(({ extensions }) => extensions['code']);
      expect(codes).toContain('UNAUTHORIZED_FIELD_OR_TYPE');
      expect(data ?? null).toBeNull();
      expect(recruiting.received).toEqual([]);
    }
    const { data, errors } = await router.ask(query, {}, await as(scope));
    expect(errors).toBeUndefined();
    expect(Object.values(data!)).not.toContain(null);
  },
);

test('the router answers a client without a token what needs no scope', async () => {
  const { errors, data } = await router.ask(`{ me { shout } ${REVIEWS} { name } } } } }`);
  expect(errors).toBeUndefined();
  expect(data).toMatchObject({ me: { shout: 'Name 1!' } });
});

test('the router sends its key and the name of the client to this subgraph only, without the credentials of the caller', async () => {
  const names = {
    'graphql-client-name': 'portal',
    'apollographql-client-name': 'app',
  };
  const credentials = { ...(await as('pii')), cookie: 'session=1', 'x-api-key': 'x' };
  reviews.received.length = 0;
  const query = `{ ${REVIEWS} { name } } } } }`;
  await router.ask(query, {}, { ...names, ...credentials });
  await router.ask(query);
  const [named, unnamed] = recruiting.received.map(({ headers }) => headers);
  expect(named).toMatchObject({ ...names, 'x-api-key': KEY });
  expect(named).not.toHaveProperty('authorization');
  expect(named).not.toHaveProperty('cookie');
  expect(Object.keys(unnamed!).filter((name) => name in names)).toEqual([]);
  expect(reviews.received[0]!.headers).not.toHaveProperty('x-api-key');
});
