import { afterAll, beforeAll, expect, test } from 'vitest';
import { entryFor } from '../../support/gateway/api-key.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../../support/gateway/over-fake.ts';
import { peopleSdl, peopleService, scopes, SECRET } from '../../schema/scopes/people.ts';
import { startIssuer, type Issuer } from './issuer.ts';

const { schema } = peopleService();
const KEYS = {
  apiKeys: [
    entryFor('router', 'router', 'read', 'drain', 'router', 'pii', 'pay'),
    entryFor('blind', 'blind', 'read', 'drain', 'router'),
    entryFor('portal', 'portal', 'read', 'pii'),
  ],
};

let issuer: Issuer;
let world: GatewayOverFake;
beforeAll(async () => {
  issuer = await startIssuer();
  world = await startGatewayOverFake(
    { schema },
    {
      snapshot: peopleSdl,
      overrides: scopes,
      config: { auth: { ...KEYS, jwt: issuer.jwt } },
    },
  );
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await issuer[Symbol.asyncDispose]();
});

const ENTITY =
  '{ _entities(representations: [{ __typename: "Person", id: "p2" }]) { ... on Person { email } } }';

async function bearer(scope: string) {
  return `Bearer ${await issuer.token({ scope })}`;
}

async function withToken(scope: string) {
  return { 'x-api-key': 'router', authorization: await bearer(scope) };
}

async function read(headers: Record<string, string>, query = '{ me { email } }') {
  const { data, errors } = await world.ask(query, {}, { headers });
  if (errors) return errors.map(({ extensions }) => extensions?.['code']);
  return JSON.stringify(data).includes(SECRET);
}

test.each([
  ['scope', { scope: 'read pii' }, true],
  ['none', { scope: 'read' }, ['FORBIDDEN']],
  ['the scope in capitals', { scope: 'read PII' }, ['FORBIDDEN']],
] as const)('a token has the scopes of fields in its claims: %s', async (_, claims, expected) => {
  const authorization = `Bearer ${await issuer.token(claims)}`;
  expect(await read({ authorization })).toEqual(expected);
});

test.each([
  ['a router with the scope, for every client', { 'x-api-key': 'router' }, true],
  ['a router without it, for none', { 'x-api-key': 'blind' }, ['FORBIDDEN']],
])('entities are read by %s', async (_, headers, expected) => {
  expect(await read(headers, ENTITY)).toEqual(expected);
});

test('entities need the scope router of the key, or of a token that comes alone', async () => {
  const withRouter = await bearer('read pii router');
  expect(await read({ authorization: withRouter }, ENTITY)).toBe(true);
  const without = await bearer('read pii');
  expect(await read({ authorization: without }, ENTITY)).toEqual(['FORBIDDEN']);
  expect(await read({ 'x-api-key': 'router', authorization: without }, ENTITY)).toBe(true);
  const portal = { 'x-api-key': 'portal', authorization: withRouter };
  expect(await read(portal, ENTITY)).toEqual(['FORBIDDEN']);
  expect(await read(portal)).toBe(true);
});

test('a router that passes on the token of its client reads only what both of them may read', async () => {
  expect(await read(await withToken('read pii'), ENTITY)).toBe(true);
  expect(await read(await withToken('read'), ENTITY)).toEqual(['FORBIDDEN']);
  const blind = { ...(await withToken('read pii')), 'x-api-key': 'blind' };
  expect(await read(blind)).toEqual(['FORBIDDEN']);
});
