/** A real Hive Gateway, configured as documented. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startIssuer, type Issuer } from '../http/auth/issuer.ts';
import { startPeople } from '../additions/people.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { composed } from '../support/supergraph/composition.ts';
import { serveRecorded, type RecordedServer } from '../support/supergraph/recorded-server.ts';
import { startRouter, type Router } from '../support/supergraph/router.ts';
import {
  ROUTER_KEY,
  salaryBandOf,
  startReviews,
  startSubgraphs,
  type Subgraphs,
} from '../support/supergraph/subgraphs.ts';

const started = new AsyncDisposableStack();
afterAll(() => started.disposeAsync());

describe('Hive Gateway', () => {
  let subgraphs: Subgraphs;
  let router: Router;
  beforeAll(async () => {
    subgraphs = started.use(await startSubgraphs());
    const { recruiting, payroll, reviews } = subgraphs;
    const supergraph = composed([recruiting, payroll, reviews]);
    const env = { RECRUITING_KEY: ROUTER_KEY };
    router = started.use(await startRouter({ supergraph, env }));
  });

  test('answers a query across subgraphs', async () => {
    const [first, second] = subgraphs.persons;
    const query = `query ($of: [ID!]!) {
      allPersons(limit: 1) { firstName salaryBand }
      a: payslips(of: $of) { person { firstName } }
      b: payslips(of: $of) { person { name: firstName } }
    }`;
    expect(await router.ask(query, { of: [second!.id] })).toEqual({
      data: {
        allPersons: [{ firstName: first!.firstName, salaryBand: salaryBandOf(first!.id) }],
        a: [{ person: { firstName: second!.firstName } }],
        b: [{ person: { name: second!.firstName } }],
      },
    });
  });

  test('sends its key and the name of the client to this subgraph only, without the credentials of the caller', async () => {
    const { recruiting, payroll } = subgraphs;
    recruiting.received.length = payroll.received.length = 0;
    const query = '{ allPersons(limit: 1) { salaryBand } }';
    const names = {
      'graphql-client-name': 'portal',
      'graphql-client-version': '1.2',
      'apollographql-client-name': 'app',
      'apollographql-client-version': '3',
    };
    const credentials = { authorization: 'Bearer x', cookie: 'session=1', 'x-api-key': 'x' };
    await router.ask(query, {}, { ...names, ...credentials });
    await router.ask(query);
    const [named, unnamed] = recruiting.received.map(({ headers }) => headers);
    expect(named).toMatchObject({ ...names, 'x-api-key': ROUTER_KEY });
    expect(named).not.toHaveProperty('authorization');
    expect(named).not.toHaveProperty('cookie');
    expect(Object.keys(unnamed!).filter((name) => name in names)).toEqual([]);
    expect(payroll.received[0]!.headers).not.toHaveProperty('x-api-key');
  });
});

const REVIEWS = 'reviewsConnection(first: 1) { edges { node { author';

describe('Hive Gateway, whose key has every scope,', () => {
  const PII = { scope: 'pii' };
  const overrides = {
    fields: { 'Person.email': PII, 'Person.nick': PII, 'Mutation.mail': PII },
    types: { Robot: { scope: 'pay' } },
  };
  const key = entryFor('all', 'router', 'read', 'drain', 'write', 'router', 'pii', 'pay');
  let issuer: Issuer;
  let recruiting: RecordedServer;
  let router: Router;
  const as = async (scope: string) => ({
    authorization: `Bearer ${await issuer.token({ scope: `openid ${scope}` })}`,
  });
  beforeAll(async () => {
    issuer = started.use(await startIssuer());
    const config = { auth: { apiKeys: [key], jwt: undefined } };
    const { gateway } = started.use(await startPeople({}, { overrides, config }));
    recruiting = started.use(await serveRecorded((request) => gateway.handler.fetch(request)));
    const reviews = started.use(await startReviews(['1', '2']));
    const { data } = await recruiting.ask('{ _service { sdl } }', {}, { 'x-api-key': 'all' });
    const { sdl } = data!['_service'] as { sdl: string };
    router = started.use(
      await startRouter({
        supergraph: composed([{ name: 'recruiting', sdl, url: recruiting.url }, reviews]),
        enforcesScopes: true,
        env: {
          RECRUITING_KEY: 'all',
          JWKS_URI: issuer.jwt.jwksUrl,
          JWT_ISSUER: issuer.jwt.issuer,
          JWT_AUDIENCE: issuer.jwt.audience,
        },
      }),
    );
  });

  test.each([
    ['a field of a derived list', 'pii', '{ allPersons(limit: 1) { email } }'],
    ['a mutation', 'pii', 'mutation { mail(to: "x") }'],
    ['the total of a type', 'pay', '{ robotsConnection(first: 1) { totalCount } }'],
    ['a field of an interface', 'pii pay', '{ anyone { nick } }'],
    ['a field of an entity', 'pii', `{ ${REVIEWS} { email } } } } }`],
    ['an added field that requires a field', 'pii', '{ me { contact } }'],
  ])('answers %s to clients with its scope, and refuses others', async (_, scope, query) => {
    for (const headers of [{}, await as(scope === 'pii' ? 'pay' : 'pii')]) {
      recruiting.received.length = 0;
      const { data, errors = [] } = await router.ask(query, {}, headers);
      const codes = errors.map(({ extensions }) => extensions['code']);
      expect(codes).toContain('UNAUTHORIZED_FIELD_OR_TYPE');
      expect(data ?? null).toBeNull();
      expect(recruiting.received).toEqual([]);
    }
    const { data, errors } = await router.ask(query, {}, await as(scope));
    expect(errors).toBeUndefined();
    expect(Object.values(data!)).not.toContain(null);
  });

  test('answers a client without a token what needs no scope', async () => {
    const { errors, data } = await router.ask(`{ me { shout } ${REVIEWS} { name } } } } }`);
    expect(errors).toBeUndefined();
    expect(data).toMatchObject({ me: { shout: 'Name 1!' } });
  });
});
