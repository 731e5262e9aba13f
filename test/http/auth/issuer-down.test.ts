import type { JWK } from 'jose';
import { expect, onTestFinished, test } from 'vitest';
import type { Config } from '../../../src/config.ts';
import { entryFor } from '../../support/gateway/api-key.ts';
import { startGatewayOverSandbox } from '../../support/gateway/gateway.ts';
import { post, type Body } from '../front.ts';
import { startIssuer } from './issuer.ts';

const apiKeys = [entryFor('a key', 'portal', 'read')];

test('while the keys of an issuer cannot be fetched, its tokens are not refused, and API keys work', async () => {
  const { issuer, door } = await start();
  issuer.answer((_, response) => void response.destroy());
  const token = await issuer.token();
  for (let tries = 0; tries < 3; tries += 1) {
    const { status, errors } = await door.ask({ authorization: `Bearer ${token}` });
    expect(status).toBe(503);
    expect(errors).toEqual([
      {
        message: expect.stringMatching(/was not checked\. Keep it, and try again in [1-5] s\.$/),
        extensions: { code: 'RATE_LIMITED', retryAfter: expect.any(Number) },
      },
    ]);
  }
  expect(issuer.requests).toBe(1);
  expect(await door.ask({ 'x-api-key': 'a key' })).toMatchObject(ANSWERED);
  expect(door.logged).toContainEqual(
    expect.objectContaining({ level: 40, reason: expect.any(String) }),
  );
  expect(JSON.stringify(door.logged)).not.toContain(token.split('.')[1]);
});

test.each<[string, (ec: JWK, second: JWK) => readonly unknown[]]>([
  ['without ids, as in a rotation', (ec, second) => [without('kid', second), without('kid', ec)]],
  ['of an unknown kind', (ec) => [{ kty: 'LATTICE', kid: 'new' }, ec]],
  ['that are none', (ec) => [null, 7, ec]],
])('tokens are accepted from a key beside others %s', async (_, keysOf) => {
  const { issuer, door } = await start();
  await issuer.addKey('ES256', 'second');
  const [ec, second] = issuer.keys as [JWK, JWK];
  issuer.answer((__, response) => response.end(JSON.stringify({ keys: keysOf(ec, second) })));
  for (const kid of [undefined, 'ec']) {
    const token = await issuer.token({}, { kid });
    const asked = await door.ask({ authorization: `Bearer ${token}` });
    const isNamed = kid !== undefined && JSON.stringify(keysOf(ec, second)).includes('"ec"');
    if (kid === undefined || isNamed) expect(asked).toMatchObject(ANSWERED);
    else expect(asked.status).toBe(401);
  }
  const forged = (await issuer.token({}, { kid: undefined })).replace(/.$/, '!').slice(0, -20);
  expect((await door.ask({ authorization: `Bearer ${forged}` })).status).toBe(401);
});

function without(name: string, key: JWK): JWK {
  return Object.fromEntries(Object.entries(key).filter(([each]) => each !== name));
}

test('tokens that no key could have signed cause no request to the issuer', async () => {
  const { issuer, door } = await start();
  const claims = (await issuer.token()).split('.')[1];
  for (const alg of ['none', 'HS256', 'PBES2-HS256+A128KW', 'ES256K', 'constructor']) {
    const head = Buffer.from(JSON.stringify({ alg, kid: 'ec' })).toString('base64url');
    const { status } = await door.ask({ authorization: `Bearer ${head}.${claims}.c2ln` });
    expect(status).toBe(401);
  }
  expect(issuer.requests).toBe(0);
});

test('without bearer tokens the authorization header is ignored, and without API keys x-api-key is', async () => {
  const { issuer } = await start();
  const keys = await openDoor({ apiKeys, jwt: undefined });
  const tokens = await openDoor({ apiKeys: [], jwt: issuer.jwt });
  const bearer = { authorization: `Bearer ${await issuer.token()}` };
  const key = { 'x-api-key': 'a key' };
  expect(await keys.ask({ ...key, authorization: 'Basic abc' })).toMatchObject(ANSWERED);
  expect(await tokens.ask({ ...bearer, 'x-api-key': 'of others' })).toMatchObject(ANSWERED);
  for (const [door, other, way] of [
    [
      keys,
      bearer,
      'A bearer token is not accepted by this gateway. Send an API key from the operator of this gateway, as "x-api-key: <key>".',
    ],
    [
      tokens,
      key,
      'An API key is not accepted by this gateway. Send the access token of a signed-in user, as "authorization: Bearer <token>".',
    ],
  ] as const) {
    const { status, errors } = await door.ask(other);
    expect(status).toBe(401);
    expect(errors![0]!.message).toBe(way);
  }
});

const ANSWERED = { status: 200, data: { __typename: 'Query' } };

async function start() {
  const issuer = await startIssuer();
  onTestFinished(() => issuer[Symbol.asyncDispose]());
  return { issuer, door: await openDoor({ apiKeys, jwt: issuer.jwt }) };
}

/** A gateway whose callers need these credentials. */
async function openDoor(auth: NonNullable<Config['auth']>) {
  const gateway = await startGatewayOverSandbox({ persons: 1 }, { config: { auth } });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return {
    logged: gateway.logged,
    ask: async (headers: Record<string, string>) => {
      const sent = post({ query: '{ __typename }' }, headers);
      const response = await gateway.fetch('/graphql', sent);
      return { status: response.status, ...((await response.json()) as Body) };
    },
  };
}
