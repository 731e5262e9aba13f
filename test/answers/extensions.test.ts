import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import { text, type Reply } from '../support/imitations/scripted.ts';

/** As a service sends them that reports the cost of each request, or traces it. */
const COST = '{"complexity":12,"list":[1.50,{"a":null}],"é\\"":"}"}';
const TRACE = `{"trace":"${'x'.repeat(20_000)}"}`;

const VACANCIES = '{ __typename: "Vacancy", id: 1 }, { __typename: "Vacancy", id: 999 }';

describe.each([
  ['forwarded fields', '{ persons(first: 3) { items { id firstName } } vacancy(id: 1) { id } }'],
  ['a whole list', '{ allPersons(limit: 120) { firstName } }'],
  ['a list whose records are copied', '{ allPersons(limit: 70) { __typename name: firstName } }'],
  ['a connection', '{ personsConnection(first: 7) { edges { cursor } nodes { firstName } } }'],
  [
    'records by id',
    `{ _entities(representations: [${VACANCIES}]) { ... on Vacancy { id title } } }`,
  ],
])('an answer with extensions, %s', (what, query) => {
  let gateway: GatewayOverFake;
  beforeAll(async () => {
    gateway = await startGatewayOverFake({ persons: 120, schema: 'rich' }, { snapshot: richSdl });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  test.each([
    ['behind the data', COST, (data: string) => `{${data},"extensions":${COST}}`],
    ['before the data', COST, (data: string) => `{"extensions":${COST},${data}}`],
    ['that are large', TRACE, (data: string) => `{"extensions":${TRACE},${data}}`],
    ['that are null', undefined, (data: string) => `{${data},"extensions":null}`],
    ['and no errors', COST, (data: string) => `{"errors":[],${data},"extensions":${COST}}`],
    ['and null errors', COST, (data: string) => `{${data},"errors":null,"extensions":${COST}}`],
    ['with white space', '{"a":1}', (data: string) => `{\n"extensions": {"a":1},\n ${data} }`],
  ])('is the same as without them: %s', async (_, extensions, spell) => {
    const plain = await answered(gateway, query);
    gateway.upstream.answer(spelled(spell));
    const extended = await answered(gateway, query);
    gateway.upstream.answer(spelled((data) => `{${data}}`));
    const { data, extensions: others } = JSON.parse(extended) as Record<string, unknown>;
    expect(data).toEqual((JSON.parse(plain) as { data: unknown }).data);
    const isPassedOn = what === 'forwarded fields' && extensions !== undefined;
    expect(others ?? undefined).toEqual(isPassedOn ? JSON.parse(extensions) : undefined);
  });

  test.each([
    ['twice', (data: string) => `{"extensions":{},${data},"extensions":{"last":1}}`],
    ['and data twice', (data: string) => `{"data":{},"extensions":{},${data}}`],
  ])('counts as it is read last where they come %s', async (_, spell) => {
    const plain = await answered(gateway, query);
    gateway.upstream.answer(spelled(spell));
    const extended = await answered(gateway, query);
    gateway.upstream.answer(spelled((data) => `{${data}}`));
    expect(JSON.parse(extended)).toMatchObject(JSON.parse(plain) as object);
  });
});

test.each([
  ['without a plugin', []],
  ['with a plugin', [{ onExecute: () => ({ onExecuteDone: () => {} }) }]],
])(
  '`http` in extensions of the service is no status or header of the answer: %s',
  async (_, plugins) => {
    await using gateway = await startGatewayOverFake({}, { plugins });
    const http = { status: 418, headers: { 'set-cookie': 'a=b' } };
    const error = { message: 'No.', path: ['persons'], extensions: { code: 'NO', http } };
    const body = { data: { persons: null }, errors: [error], extensions: { http } };
    gateway.upstream.answer(text(JSON.stringify(body)));
    for (const [query, path] of [
      ['{ persons(first: 1) { items { id } } }', 'persons'],
      ['{ allPersons(limit: 1) { id } }', 'allPersons'],
    ]) {
      const response = await gateway.fetch('/graphql', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ query }),
      });
      expect([response.status, response.headers.get('set-cookie')]).toEqual([200, null]);
      const { errors } = (await response.json()) as { errors: unknown };
      expect(errors).toMatchObject([
        { message: 'No.', path: [path], extensions: { code: 'NO', http } },
      ]);
    }
  },
);

const richSdl = readFileSync(new URL('../../schema/rich.graphql', import.meta.url), 'utf8');

/** Answers as the sandbox does, with other bytes around the data. @param spell receives the member `data` */
function spelled(spell: (data: string) => string): Reply {
  return async (response, received, sandbox) => {
    const { authorization = '' } = received.headers;
    const answer = await fetch(`${sandbox.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization },
      body: received.body,
    });
    await text(spell((await answer.text()).trim().slice(1, -1)), 200, {
      'content-type': 'application/json',
    })(response, received, sandbox);
  };
}

async function answered(gateway: GatewayOverFake, query: string): Promise<string> {
  const response = await gateway.fetch('/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ query }),
  });
  return response.text();
}
