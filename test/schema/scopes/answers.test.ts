import { getIntrospectionQuery, parse } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGatewayOverFake, type GatewayOverFake } from '../../support/gateway/over-fake.ts';
import type { TestGatewayOptions } from '../../support/gateway/gateway.ts';
import { after, honest } from '../../support/imitations/scripted.ts';
import { as, keys, peopleSdl, peopleService, scopes, SECRET } from './people.ts';

const { schema, mutations } = peopleService();

function start(fieldScopes: 'reject' | 'null', { config, ...options }: TestGatewayOptions = {}) {
  return startGatewayOverFake(
    { schema },
    {
      snapshot: peopleSdl,
      overrides: scopes,
      config: { auth: keys, fieldScopes, mutations: 'all', ...config },
      ...options,
    },
  );
}

let nulling: GatewayOverFake;
let rejecting: GatewayOverFake;
beforeAll(async () => {
  nulling = await start('null');
  rejecting = await start('reject');
});
afterAll(async () => {
  await nulling[Symbol.asyncDispose]();
  await rejecting[Symbol.asyncDispose]();
});

const FEW = as('few');
const forbidden = (subject: string, path: readonly (string | number)[], scope = 'pii') => ({
  message: `${subject} needs the scope "${scope}", which this credential does not have. The operator of this gateway can grant it.`,
  path,
  extensions: { code: 'FORBIDDEN' },
});

describe('null', () => {
  test.each<[string, string, unknown, object[]]>([
    [
      'each field has an error of its own',
      '{ people(first: 2) { items { id mail: email contacts { city } } } }',
      {
        people: {
          items: [
            { id: 'p1', mail: null, contacts: null },
            { id: 'p2', mail: null, contacts: null },
          ],
        },
      },
      [0, 1].flatMap((at) => [
        forbidden('The field Person.email', ['people', 'items', at, 'mail']),
        forbidden('The field Person.contacts', ['people', 'items', at, 'contacts']),
      ]),
    ],
    [
      'a field that must not be null nulls its parent',
      '{ me { id phone } team(id: "t1") { name lead { phone } } }',
      { me: null, team: { name: 'Team 1', lead: null } },
      [
        forbidden('The field Person.phone', ['me', 'phone']),
        forbidden('The field Person.phone', ['team', 'lead', 'phone']),
      ],
    ],
    [
      'a field that must not be null, of a record that must not be null, nulls the nearest parent that may be',
      '{ allPeople(limit: 1) { phone } me { name } }',
      { allPeople: null, me: { name: 'Ada 1' } },
      [forbidden('The field Person.phone', ['allPeople', 0, 'phone'])],
    ],
    [
      'an interface needs the scopes of all its types, and a fragment those of its own',
      '{ named { nick } anything { ... on Team { nick } ... on Person { nick } } }',
      {
        named: [{ nick: null }, { nick: null }],
        anything: [{ nick: null }, { nick: 'T1' }],
      },
      [
        forbidden('The field Person.nick', ['named', 0, 'nick']),
        forbidden('The field Person.nick', ['named', 1, 'nick']),
        forbidden('The field Person.nick', ['anything', 0, 'nick']),
      ],
    ],
    [
      'a key that is also selected of another type keeps its value there',
      '{ anything { ... on Team { x: name } ... on Person { x: email } } }',
      { anything: [{ x: null }, { x: 'Team 1' }] },
      [forbidden('The field Person.email', ['anything', 0, 'x'])],
    ],
    [
      'a filter takes the whole field with it, and nothing else',
      '{ a: allPeople(email: "x") { name } b: allPeople(limit: 1) { name } }',
      { a: null, b: [{ name: 'Ada 1' }] },
      [forbidden('The argument Query.allPeople(email:)', ['a'])],
    ],
    [
      'a type is left out wherever it is returned',
      '{ me { name salary { id } } allSalaries { id } }',
      { me: { name: 'Ada 1', salary: null }, allSalaries: null },
      [
        forbidden('The type Salary', ['me', 'salary'], 'pay'),
        forbidden('The field Query.allSalaries', ['allSalaries'], 'pay'),
      ],
    ],
    [
      'a field that is not included has no error',
      '{ me { name email @include(if: false) phone @skip(if: true) } }',
      { me: { name: 'Ada 1' } },
      [],
    ],
    [
      'only __typename is left',
      '{ me { __typename email } }',
      { me: { __typename: 'Person', email: null } },
      [forbidden('The field Person.email', ['me', 'email'])],
    ],
  ])('%s', async (_, query, data, errors) => {
    const answer = await nulling.ask(query, {}, FEW);
    expect(answer.data).toEqual(data);
    expect(answer.errors ?? []).toHaveLength(errors.length);
    expect(answer.errors ?? []).toEqual(expect.arrayContaining(errors));
  });

  test('a mutation without the scope is not executed, and those beside it are', async () => {
    const before = { ...mutations };
    const answer = await nulling.ask(
      'mutation { mail(email: "x") rename(id: "p1", name: "Bo") { name email } }',
      {},
      FEW,
    );
    expect(answer.data).toEqual({ mail: null, rename: { name: 'Ada 1', email: null } });
    expect(answer.errors).toHaveLength(2);
    expect(answer.errors).toEqual(
      expect.arrayContaining([
        forbidden('The field Mutation.mail', ['mail']),
        forbidden('The field Person.email', ['rename', 'email']),
      ]),
    );
    expect(mutations).toEqual({ ...before, renamed: before.renamed + 1 });
  });

  test('a caller with some of the scopes lacks only the others', async () => {
    const answer = await nulling.ask('{ me { email salary { id } } }', {}, as('pii'));
    expect(answer.data).toEqual({ me: { email: `${SECRET} mail 1`, salary: null } });
    expect(answer.errors).toEqual([forbidden('The type Salary', ['me', 'salary'], 'pay')]);
  });

  test('callers with other scopes do not share an answer, though they ask for the same at once', async () => {
    const { upstream, ask } = nulling;
    const before = upstream.received.length;
    const gate = Promise.withResolvers<void>();
    upstream.answer(after(gate.promise, honest));
    const query = '{ me { name email } }';
    const answers = Promise.all([
      ask(query, {}, as('all')),
      ask(query, {}, FEW),
      ask(query, {}, as('pii')),
      ask('{ me { name mail: email } }', {}, FEW),
    ]);
    await upstream.arrived(before + 3);
    gate.resolve();
    upstream.answer(honest);
    const [all, few, pii, alias] = await answers;
    expect(all.data).toEqual({ me: { name: 'Ada 1', email: `${SECRET} mail 1` } });
    expect(pii.data).toEqual(all.data);
    expect(few.data).toEqual({ me: { name: 'Ada 1', email: null } });
    expect(alias.data).toEqual({ me: { name: 'Ada 1', mail: null } });
    // The two who may read it share one request.
    expect(upstream.received.length - before).toBe(3);
  });

  test.each([
    ['@stream', '{ allPeople(limit: 55) @stream { id email } }'],
    ['@stream of a list that is refused', '{ allSalaries @stream { amount } }'],
  ])('%s sends null with an error, and nothing else', async (_, query) => {
    const read = async (key: 'all' | 'few') => {
      const response = await nulling.fetch('/graphql', {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'multipart/mixed;deferSpec=20220824',
          ...as(key).headers,
        },
        body: JSON.stringify({ query }),
      });
      return response.text();
    };
    expect(await read('all')).toContain(SECRET);
    const few = await read('few');
    expect(few).not.toContain(SECRET);
    expect(few).toContain('"FORBIDDEN"');
  });

  test('the totals and cursors of a list are those that every caller gets', async () => {
    const query =
      '{ peopleConnection(first: 2) { totalCount edges { cursor node { id email } } pageInfo { hasNextPage } } }';
    const [all, few] = [await nulling.ask(query, {}, as('all')), await nulling.ask(query, {}, FEW)];
    const without = JSON.stringify(all.data).replaceAll(/"SECRET[^"]*"/g, 'null');
    expect(few.data).toEqual(JSON.parse(without));
    expect(few.errors).toHaveLength(2);
  });
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

  test('an invalid operation gets the errors of validation', async () => {
    const { errors } = await rejecting.ask('{ me { email nothing } }', {}, FEW);
    expect(errors!.map(({ message }) => message)).toEqual([
      expect.stringContaining('Cannot query field "nothing"'),
    ]);
  });

  test('introspection shows the whole schema to every caller', async () => {
    const query = getIntrospectionQuery();
    const [all, few] = [
      await rejecting.ask(query, {}, as('all')),
      await rejecting.ask(query, {}, FEW),
    ];
    expect(few.errors).toBeUndefined();
    expect(few.data).toEqual(all.data);
  });

  test('a trusted document is refused like its text', async () => {
    await using world = await start('reject', {
      trustedDocuments: { mail: 'query Mail { me { email } }', name: 'query Name { me { name } }' },
      config: { trustedDocuments: 'documents.json', trustedDocumentsOnly: true },
    });
    const ask = async (documentId: string) => {
      const response = await world.fetch('/graphql', {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...FEW.headers },
        body: JSON.stringify({ documentId }),
      });
      return response.json() as Promise<unknown>;
    };
    expect(await ask('name')).toEqual({ data: { me: { name: 'Ada 1' } } });
    expect(await ask('mail')).toMatchObject({ errors: [{ extensions: { code: 'FORBIDDEN' } }] });
  });
});

test.each(['reject', 'null'] as const)(
  '%s: the program around the gateway reads everything without a credential',
  async (fieldScopes) => {
    const { gateway } = fieldScopes === 'null' ? nulling : rejecting;
    const result = await gateway.executor({ document: parse('{ me { email } }') });
    expect(result).toEqual({ data: { me: { email: `${SECRET} mail 1` } } });
  },
);

test.each(['reject', 'null'] as const)(
  '%s: callers that need no credential read everything, and the log warns of it',
  async (fieldScopes) => {
    await using world = await start(fieldScopes, { config: { auth: undefined } });
    expect((await world.ask('{ me { email } }')).data).toEqual({
      me: { email: `${SECRET} mail 1` },
    });
    expect(world.logged.map(({ msg }) => msg)).toContainEqual(
      expect.stringMatching(/^adapters\.json has scopes, but callers need no credential/),
    );
  },
);

describe('with NODE_INTERFACE', () => {
  test.each([
    ['node', 'query ($id: ID!) { node(id: $id) { ... on Person { email } } }'],
    ['nodes', 'query ($id: ID!) { nodes(ids: [$id]) { ... on Person { email } } }'],
    ['a fragment', 'query ($id: ID!) { node(id: $id) { ...F } } fragment F on Named { nick }'],
  ])('%s needs the scopes of the fields', async (_, query) => {
    const config = { nodeInterface: true };
    await using reject = await start('reject', { config });
    await using nulls = await start('null', { config });
    const { data } = await reject.ask<{ me: { id: string } }>('{ me { id } }', {}, as('all'));
    const { id } = data.me;
    expect(JSON.stringify(await reject.ask(query, { id }, as('all')))).toContain(SECRET);
    expect((await reject.ask(query, { id }, FEW)).data).toBeUndefined();
    const few = await nulls.ask(query, { id }, FEW);
    expect(JSON.stringify(few)).not.toContain(SECRET);
    expect(few.errors).toHaveLength(1);
    expect(few.errors![0]!.extensions).toEqual({ code: 'FORBIDDEN' });
  });
});

test.each(['reject', 'null'] as const)('%s: a prefix changes nothing', async (fieldScopes) => {
  const overrides = {
    fields: { 'RecruitingPerson.email': { scope: 'pii' } },
    types: { RecruitingSalary: { scope: 'pay' } },
  };
  await using world = await start(fieldScopes, {
    overrides,
    config: { schemaPrefix: 'Recruiting' },
  });
  const query = '{ recruitingAllPeople(limit: 1) { name email salary { id } } }';
  const all = await world.ask(query, {}, as('all'));
  expect(JSON.stringify(all.data)).toMatch(/SECRET mail 1.*SECRET-s1/);
  const few = await world.ask(query, {}, FEW);
  expect(few.data).toEqual(
    fieldScopes === 'null'
      ? { recruitingAllPeople: [{ name: 'Ada 1', email: null, salary: null }] }
      : undefined,
  );
  expect(new Set(few.errors!.map(({ extensions }) => extensions?.['code']))).toEqual(
    new Set(['FORBIDDEN']),
  );
});
