import { createHmac, createPublicKey } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { headOf, openBare } from '../../support/clients/bare-client.ts';
import { entryFor } from '../../support/gateway/api-key.ts';
import { startGateway } from '../../support/gateway/gateway.ts';
import { makeExecutableSchema, personPages, PERSONS } from '../../service/lists.ts';
import { post } from '../../support/clients/post.ts';
import type { GraphqlAnswer } from '../../support/gateway/ask-at.ts';
import { startFront, type Front } from '../../support/gateway/front.ts';
import { seconds, startIssuer, type Issuer } from './issuer.ts';

// Which callers are admitted, and what each of them may do. The scopes of operations are in every-way.test.ts.

const SECRET = 'of-ada@example.com';
/** A mutation leads back to the root, as the payloads of some do. */
const SDL = `${PERSONS}
  type Person { id: ID! email: String }
  extend type Query { me: Person thing: Thing }
  "Its fields have the names of router fields."
  type Thing { _service: String _entities: String }
  type Mutation { change: Query }`;
const schema = makeExecutableSchema(SDL, {
  Query: {
    persons: personPages(['1']),
    me: () => ({ id: '1' }),
    thing: () => ({ _service: 'a', _entities: 'b' }),
  },
  Person: { email: () => SECRET },
  Mutation: { change: () => ({}) },
});

const PORTAL = 'rsk_of-the-portal-0123456789012345678901';
const WRITER = 'rsk_of-the-writer-0123456789012345678901';
const ROUTER = 'rsk_of-the-router-0123456789012345678901';
const BLIND = 'rsk_of-a-router-without-pii-0123456789012';
const NAMES: Readonly<Record<string, string>> = {
  [PORTAL]: 'portal',
  [WRITER]: 'writer',
  [ROUTER]: 'router',
  [BLIND]: 'blind',
};
const apiKeys = [
  entryFor(PORTAL, NAMES[PORTAL]!, 'read', 'pii'),
  entryFor(WRITER, NAMES[WRITER]!, 'read', 'write'),
  entryFor(ROUTER, NAMES[ROUTER]!, 'read', 'write', 'router', 'pii'),
  entryFor(BLIND, NAMES[BLIND]!, 'read', 'router'),
];
const SUBJECT = 'ada-lovelace';

let issuer: Issuer;
let gateway: Front;
beforeAll(async () => {
  issuer = await startIssuer();
  await issuer.addKey('RS256', 'rsa');
  await issuer.addKey('EdDSA', 'ed');
  const config = { auth: { apiKeys, jwt: issuer.jwt }, mutations: 'all' as const, maxAliases: 1 };
  const overrides = { fields: { 'Person.email': { scope: 'pii' } } };
  gateway = await startFront({ schema }, { snapshot: SDL, overrides, config });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await issuer[Symbol.asyncDispose]();
});

const ME = '{ me { id } }';
const EMAIL = '{ me { email } }';
const CHANGE = 'mutation { change { __typename } }';
const BEHIND = 'mutation { change { _service { sdl } } }';
const ALIASES = '{ a: me { id } b: me { id } }';
const NAMESAKES = '{ thing { _service _entities } }';
const ENTITY =
  '{ _entities(representations: [{ __typename: "Person", id: "1" }]) { ... on Person { email } } }';

type Headers = Record<string, string>;
type Outcome = 'answered' | 'UNAUTHENTICATED' | 'FORBIDDEN' | 'OPERATION_TOO_COMPLEX';
type Row = readonly [name: string, outcome: Outcome, headers: Sent, query: string];
type Sent = () => Headers | Promise<Headers>;

const withKey =
  (key: string): Sent =>
  () => ({ 'x-api-key': key });
const bearer =
  (claims: object = {}, kid: string | undefined = 'ec'): Sent =>
  async () =>
    authorization(await issuer.token({ sub: SUBJECT, ...claims }, { kid }));
const written =
  (write: (token: string) => string): Sent =>
  async () => ({ authorization: write(await issuer.token()) });
/** Claims of the issuer behind another header, which anyone can write. @param sign makes the signature of a text */
const forged =
  (alg: string, sign: (text: string) => string): Sent =>
  async () => {
    const header = Buffer.from(JSON.stringify({ alg, kid: 'rsa' })).toString('base64url');
    const text = `${header}.${(await issuer.token()).split('.')[1]}`;
    return authorization(`${text}.${sign(text)}`);
  };
const UNSIGNED = forged('none', () => '');
/** A verifier that takes the secret and the public key for the same thing accepts it (RFC 8725, 2.1). */
const SIGNED_WITH_PUBLIC_KEY = forged('HS256', (text) => {
  const key = issuer.keys.find(({ kid }) => kid === 'rsa')!;
  const pem = createPublicKey({ key, format: 'jwk' }).export({ type: 'spki', format: 'pem' });
  return createHmac('sha256', pem).update(text).digest('base64url');
});
const both =
  (key: string, token: Sent): Sent =>
  async () => ({ 'x-api-key': key, ...(await token()) });
const authorization = (token: string) => ({ authorization: `Bearer ${token}` });

function rows(outcome: Outcome, query: string, sent: Readonly<Record<string, Sent>>): Row[] {
  return Object.entries(sent).map(([name, headers]) => [name, outcome, headers, query]);
}

const CALLERS: readonly Row[] = [
  ...rows('answered', ME, {
    'an API key': withKey(PORTAL),
    'a token signed by a curve': bearer(),
    'a token signed by RSA': bearer({}, 'rsa'),
    'a token signed by Ed25519': bearer({}, 'ed'),
    'a token without a key id, where only one key can be meant': async () =>
      authorization(await issuer.token({ sub: SUBJECT }, { kid: undefined })),
    'a token of several audiences': bearer({ aud: ['elsewhere', 'recruiting'] }),
    'a token that expired within the leeway of 30 s': bearer({ exp: seconds(-20) }),
    'a scheme in other letters': written((token) => `bEARER ${token}`),
  }),
  ...rows('UNAUTHENTICATED', ME, {
    'no credential': () => ({}),
    'the beginning of a key': withKey(PORTAL.slice(0, -1)),
    'a key twice': withKey(`${PORTAL}, ${PORTAL}`),
    'a key in the header of tokens': () => ({ authorization: PORTAL }),
    'a token of another issuer': bearer({ iss: 'https://login.test/' }),
    'a token for another audience': bearer({ aud: 'recruiting2' }),
    'an expired token': bearer({ exp: seconds(-60) }),
    'a token that never expires': bearer({ exp: undefined }),
    'a token of an unknown key': bearer({}, 'unknown'),
    'a token with the signature of another': async () => {
      const [mine, other] = [await issuer.token(), await issuer.token({ scope: 'read write' })];
      return authorization(other.replace(/[^.]*$/, mine.split('.')[2]!));
    },
    'a token that nobody has signed': UNSIGNED,
    'a token whose secret is the public key': SIGNED_WITH_PUBLIC_KEY,
    'a scheme without a token': written(() => 'Bearer'),
    'a token without a scheme': written((token) => token),
    'a token twice': written((token) => `Bearer ${token}, Bearer ${token}`),
    'a key with a wrong token': both(PORTAL, () => authorization('hello')),
    'a key with another credential than a token': both(PORTAL, () => ({
      authorization: 'Basic aGk=',
    })),
    'a key with an expired token': both(WRITER, bearer({ exp: seconds(-60) })),
    'a token with a wrong key': both('rsk_of-nobody', bearer()),
  }),
  // The scopes of a token are in one of two claims.
  ...rows('answered', EMAIL, {
    'a key with the scope of a field': withKey(PORTAL),
    'a token with the scope of a field': bearer({ scope: 'read pii' }),
    'a token with unknown scopes': bearer({ scope: 'openid read  pii' }),
    'scopes in scp': bearer({ scope: undefined, scp: 'read pii' }),
    'scopes in a list': bearer({ scope: undefined, scp: ['read', 'pii', 7, null] }),
  }),
  ...rows('FORBIDDEN', EMAIL, {
    'a key without the scope of a field': withKey(WRITER),
    'a token without the scope of a field': bearer(),
    'a scope of which the key has none': both(BLIND, bearer({ scope: 'read pii' })),
  }),
  ...rows('FORBIDDEN', ME, {
    'similar scopes': bearer({ scope: 'READ reader read+write toString' }),
    'claims of another form': bearer({ scope: { read: true }, scp: 1 }),
  }),
  // A program that acts for a person may do what both of them may do.
  ...rows('answered', CHANGE, {
    'both may write': both(WRITER, bearer({ scope: 'read write' })),
  }),
  ...rows('FORBIDDEN', CHANGE, {
    'only the key may write': both(WRITER, bearer()),
    'only the token may write': both(PORTAL, bearer({ scope: 'read write' })),
  }),
  // The scope router counts if the key has it, whatever token comes with it.
  ...rows('answered', ENTITY, {
    'entities for a router': withKey(ROUTER),
    'entities for a token of a router': bearer({ scope: 'read pii router' }),
    'entities for a router with the token of its client': both(
      ROUTER,
      bearer({ scope: 'read pii' }),
    ),
  }),
  ...rows('FORBIDDEN', ENTITY, {
    'a field of entities for a router without its scope': withKey(BLIND),
    'a field of entities for a client without its scope': both(ROUTER, bearer()),
    'entities for a token that is not of a router': bearer({ scope: 'read pii' }),
    'entities for a key that is not of a router': both(
      PORTAL,
      bearer({ scope: 'read pii router' }),
    ),
  }),
  ...rows('FORBIDDEN', BEHIND, { 'the SDL behind a mutation for a writer': withKey(WRITER) }),
  // Whoever has sent the operation first.
  ...rows('OPERATION_TOO_COMPLEX', ALIASES, { 'more aliases': withKey(PORTAL) }),
  ...rows('answered', ALIASES, { 'more aliases of a router': withKey(ROUTER) }),
  ...rows('answered', NAMESAKES, { 'fields with the names of router fields': withKey(PORTAL) }),
];

test.each(CALLERS)('%s is %s', async (_, outcome, make, query) => {
  const headers = await make();
  const before = gateway.service.received.length;
  const response = await gateway.fetch('/graphql', post({ query }, headers));
  const text = await response.text();
  const { data, errors } = JSON.parse(text) as GraphqlAnswer;
  const isRefused = outcome !== 'answered';
  expect(errors?.map(({ extensions }) => extensions.code)).toEqual(
    isRefused ? [outcome] : undefined,
  );
  expect(response.status).toBe(outcome === 'UNAUTHENTICATED' ? 401 : 200);
  expect(text.includes(SECRET)).toBe(!isRefused && query.includes('email'));
  if (isRefused) expect([data, gateway.service.received.length]).toEqual([undefined, before]);
  // A program is itself also where it acts for a person.
  const name = outcome === 'UNAUTHENTICATED' ? undefined : NAMES[headers['x-api-key'] ?? ''];
  expect(gateway.logged.findLast(({ msg }) => msg === 'request')!['caller']).toBe(name);
  const parts = Object.values(headers).flatMap((sent) => sent.split(/[ .]/));
  const sentOn = gateway.service.received.map(({ headers: of, body }) => [of, body]);
  const seen = JSON.stringify([text, gateway.logged, sentOn]);
  // No credential is repeated, logged or sent on.
  for (const part of [...parts.filter(({ length }) => length > 12), SUBJECT]) {
    expect(seen).not.toContain(part);
  }
});

test('the reason for refusing a token is logged, and not its content', async () => {
  for (const [make, reason] of [
    [bearer({ aud: 'of-max' }), { code: 'ERR_JWT_CLAIM_VALIDATION_FAILED', claim: 'aud' }],
    [() => authorization('nonsense'), { code: 'ERR_JWS_INVALID' }],
    [UNSIGNED, { code: 'ERR_JOSE_ALG_NOT_ALLOWED' }],
    [SIGNED_WITH_PUBLIC_KEY, { code: 'ERR_JOSE_ALG_NOT_ALLOWED' }],
  ] as const) {
    await gateway.fetch('/graphql', post({ query: ME }, await make()));
    expect(JSON.stringify(gateway.logged)).not.toMatch(/of-max|nonsense/);
    const line = gateway.logged.findLast(({ msg }) => msg === 'a bearer token was refused');
    expect(line).toMatchObject({ requestId: expect.any(String), ...reason });
  }
  await gateway.fetch('/graphql', post({ query: ME }, { authorization: 'Token of-max' }));
  const lines = gateway.logged.filter(({ msg }) => msg === 'request');
  expect(lines.slice(-2)).toMatchObject([
    { refused: 'bearer token' },
    { refused: 'not "Bearer <token>"' },
  ]);
});

test('of two credentials of one kind neither is accepted, none is read from the address, and no body is awaited', async () => {
  const good = `Authorization: Bearer ${await issuer.token()}\r\n`;
  const bad = 'Authorization: Bearer hello\r\n';
  const key = `x-api-key: ${PORTAL}\r\n`;
  const get = 'GET /graphql?query={me{id}}';
  const head = 'HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n';
  for (const [text, status] of [
    [`${get} ${head}${good}`, 200],
    [`${get} ${head}${good}${bad}`, 401],
    [`${get} ${head}${bad}${good}`, 401],
    [`${get} ${head}${good}${good}`, 401],
    [`${get} ${head}${key}`, 200],
    [`${get} ${head}${key}${key}`, 401],
    [`${get}&x-api-key=${PORTAL} ${head}`, 401],
    [`POST /graphql ${head}Content-Type: application/json\r\nContent-Length: 100\r\n`, 401],
  ] as const) {
    const answer = await headOf(openBare(gateway, `${text}\r\n`));
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  }
});

const FOR_KEYS = 'ApiKey realm="recruiting-subgraph"';
const FOR_TOKENS = 'Bearer realm="recruiting-subgraph"';
const WITH_KEY = 'Send an API key from the operator of this gateway, as "x-api-key: <key>"';
const WITH_TOKEN = 'the access token of a signed-in user, as "authorization: Bearer <token>".';

test.each<[string, Sent, says: string, challenge: string]>([
  ['nothing', () => ({}), `${WITH_KEY}, or ${WITH_TOKEN}`, FOR_TOKENS],
  ['a token where only keys are accepted', bearer(), `${WITH_KEY}. If`, FOR_KEYS],
  ['a key where only tokens are accepted', withKey(PORTAL), `Send ${WITH_TOKEN}`, FOR_TOKENS],
])('a caller that sends %s learns what to send', async (_, sent, says, challenge) => {
  const auth = {
    apiKeys: says.includes('API key') ? [entryFor(PORTAL, 'portal', 'read')] : [],
    jwt: says.includes('token of') ? issuer.jwt : undefined,
  };
  await using other = await startGateway(gateway.service, { config: { auth } });
  const accept = 'application/graphql-response+json, application/json;q=0.9';
  const ask = (headers: Headers) =>
    other.fetch('/graphql', post({ query: '{ __typename }' }, { accept, ...headers }));
  const response = await ask(await sent());
  expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, challenge]);
  expect(response.headers.get('content-type')).toMatch(/^application\/graphql-response\+json;/);
  const message = expect.stringContaining(says) as string;
  const errors = [{ message, extensions: { code: 'UNAUTHENTICATED' } }];
  expect(await response.json()).toEqual({ errors });
  // The header of a kind that is not accepted does no harm beside the other one.
  expect((await ask(await both(PORTAL, bearer())())).status).toBe(200);
});

test('each subject of tokens has a budget of pages', async () => {
  const config = { auth: { apiKeys: [], jwt: issuer.jwt }, pagesPerMinute: 1 };
  await using other = await startFront({ schema }, { snapshot: SDL, config });
  for (const [sub, code] of [
    ['ada', undefined],
    ['max', undefined],
    ['ada', 'RATE_LIMITED'],
  ] as const) {
    const query = '{ persons(first: 1) { items { id } } }';
    const headers = await bearer({ sub })();
    const { errors } = await other.ask(query, {}, { headers });
    expect(errors?.[0]!.extensions['code']).toBe(code);
  }
});
