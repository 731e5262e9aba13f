import { parse } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGatewayOverFake, type GatewayOverFake } from '../../support/gateway/over-fake.ts';
import type { TestGatewayOptions } from '../../support/gateway/gateway.ts';
import { as, keys, peopleSdl, peopleService, scopes, SECRET } from './people.ts';

const { schema, mutations } = peopleService();

function start({ config, ...options }: TestGatewayOptions = {}) {
  return startGatewayOverFake(
    { schema },
    {
      snapshot: peopleSdl,
      overrides: scopes,
      config: { auth: keys, mutations: 'all', ...config },
      ...options,
    },
  );
}

let rejecting: GatewayOverFake;
beforeAll(async () => {
  rejecting = await start();
});
afterAll(async () => {
  await rejecting[Symbol.asyncDispose]();
});

const FEW = as('few');
const forbidden = (subject: string, path: readonly (string | number)[], scope = 'pii') => ({
  message: `${subject} needs the scope "${scope}", which this credential does not have. The operator of this gateway can grant it.`,
  path,
  extensions: { code: 'FORBIDDEN' },
});

function sendEmail(accept: string) {
  return rejecting.fetch('/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept, ...FEW.headers },
    body: JSON.stringify({ query: '{ me { name email } }' }),
  });
}

describe('reject', () => {
  test('the error names the field and the scope, and has status 403 for clients that accept it', async () => {
    const graphql = await sendEmail('application/graphql-response+json');
    expect(graphql.status).toBe(403);
    const { path: _, ...error } = forbidden('The field Person.email', []);
    expect(await graphql.json()).toEqual({ errors: [error] });
    expect((await sendEmail('application/json')).status).toBe(200);
  });

  test.each([
    ['whatever its conditions are', '{ me { name email @include(if: false) } }'],
    [
      'with a mutation beside it',
      'mutation { rename(id: "p1", name: "Bo") { name } mail(email: "x") }',
    ],
  ])('an operation with the field is refused, %s', async (_, query) => {
    const before = { ...mutations };
    const { data, errors } = await rejecting.ask(query, {}, FEW);
    expect({ data, codes: errors!.map(({ extensions }) => extensions) }).toEqual({
      data: undefined,
      codes: [{ code: 'FORBIDDEN' }],
    });
    expect(mutations).toEqual(before);
  });

  test('a caller with one of two scopes lacks only the other', async () => {
    const email = await rejecting.ask('{ me { email } }', {}, as('pii'));
    expect(email).toEqual({ data: { me: { email: `${SECRET} mail 1` } } });
    const salary = await rejecting.ask('{ me { email salary { id } } }', {}, as('pii'));
    expect(salary.errors).toEqual([
      expect.objectContaining({ message: expect.stringContaining('needs the scope "pay"') }),
    ]);
  });

  test('what a document has beside the operation that is selected does not count', async () => {
    const query = 'query A { me { name } } query B { me { ...F } } fragment F on Person { email }';
    const ask = async (operationName: string) => {
      const response = await rejecting.fetch('/graphql', {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...FEW.headers },
        body: JSON.stringify({ query, operationName }),
      });
      return response.json() as Promise<unknown>;
    };
    expect(await ask('A')).toEqual({ data: { me: { name: 'Ada 1' } } });
    expect(await ask('B')).toMatchObject({ errors: [{ extensions: { code: 'FORBIDDEN' } }] });
  });
});

test('the program around the gateway reads everything without a credential', async () => {
  const { gateway } = rejecting;
  const result = await gateway.executor({ document: parse('{ me { email } }') });
  expect(result).toEqual({ data: { me: { email: `${SECRET} mail 1` } } });
});

test('callers that need no credential read everything, and the log warns of it', async () => {
  await using world = await start({ config: { auth: undefined } });
  expect((await world.ask('{ me { email } }')).data).toEqual({
    me: { email: `${SECRET} mail 1` },
  });
  expect(world.logged.map(({ msg }) => msg)).toContainEqual(
    expect.stringMatching(/^adapters\.json has scopes, but callers need no credential/),
  );
});

test('a prefix changes nothing', async () => {
  const overrides = {
    fields: { 'RecruitingPerson.email': { scope: 'pii' } },
    types: { RecruitingSalary: { scope: 'pay' } },
  };
  await using world = await start({ overrides, config: { schemaPrefix: 'Recruiting' } });
  const query = '{ recruitingAllPeople(limit: 1) { name email salary { id } } }';
  const all = await world.ask(query, {}, as('all'));
  expect(JSON.stringify(all.data)).toMatch(/SECRET mail 1.*SECRET-s1/);
  const few = await world.ask(query, {}, FEW);
  expect(few.data).toBeUndefined();
  expect(new Set(few.errors!.map(({ extensions }) => extensions?.['code']))).toEqual(
    new Set(['FORBIDDEN']),
  );
});
