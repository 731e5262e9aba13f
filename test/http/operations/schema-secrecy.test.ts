import {
  buildClientSchema,
  getIntrospectionQuery,
  parse,
  validate,
  type IntrospectionQuery,
} from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { entryFor } from '../../support/gateway/api-key.ts';
import { post, startFront, type Body, type Front } from '../front.ts';

const apiKeys = [
  entryFor('gate', 'gate', 'read', 'router'),
  entryFor('portal', 'portal', 'read', 'write'),
];
const auth = { apiKeys, jwt: undefined };

let closed: Front;
let open: Front;
beforeAll(async () => {
  closed = await startFront({ config: { introspection: false, auth, mutations: 'all' } });
  open = await startFront({ config: { introspection: true, mutations: 'all' } });
});
afterAll(async () => {
  await closed[Symbol.asyncDispose]();
  await open[Symbol.asyncDispose]();
});

const MISTAKES: [string, string, Record<string, unknown>?][] = [
  ['a field', '{ candidatez { items { id } } }'],
  ['an argument', '{ candidate(idd: 1) { id } }'],
  ['a type', '{ me { ... on Candidat { id } } }'],
  ['an enum value', '{ candidates(stage: NEWW) { total } }'],
  ['an input field', '{ vacancyBy(by: { idd: 1 }) { id } }'],
  [
    'an enum value in a variable',
    'query ($a: Stage) { candidates(stage: $a) { total } }',
    { a: 'NEWW' },
  ],
  [
    'an input field in a variable',
    'query ($a: VacancyBy!) { vacancyBy(by: $a) { id } }',
    { a: { idd: 1 } },
  ],
];

describe('an error message with a misspelled name', () => {
  test.each(MISTAKES)(
    'an error message suggests another name only if introspection is on: %s',
    async (_, query, variables) => {
      const answered = await ask(open, { query, variables });
      expect(JSON.stringify(answered.errors)).toMatch(/Did you mean/);
      const quiet = await ask(closed, { query, variables });
      expect(quiet.errors![0]).toMatchObject({ extensions: { code: 'BAD_USER_INPUT' } });
      expect(JSON.stringify(quiet.errors)).not.toMatch(/Did you mean/);
    },
  );

  test('an error message keeps text of the caller that looks like a suggestion', async () => {
    const { errors } = await ask(closed, {
      query: '{ candidate(id: "Did you mean x?") { id } }',
    });
    expect(errors![0]!.message).toContain('"Did you mean x?"');
  });
});

describe('the SDL for supergraphs', () => {
  test.each([
    '{ _service { sdl } }',
    '{ me { id } ...F } fragment F on Query { hidden: _service { __typename } }',
    'query Q($no: Boolean = true) { _service @skip(if: $no) { sdl } }',
  ])('without introspection the SDL is refused, except to a router: %s', async (query) => {
    const before = closed.service.stats.requests.graphql;
    const portal = await ask(closed, { query }, 'portal');
    expect(portal.errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
    expect(closed.service.stats.requests.graphql).toBe(before);
    expect((await ask(closed, { query }, 'gate')).errors).toBeUndefined();
    expect((await ask(closed, { query }, 'portal')).errors).toHaveLength(1);
    expect((await ask(open, { query })).errors).toBeUndefined();
  });

  test('the SDL is refused to every caller if routers have no credential', async () => {
    await using anonymous = await startFront({ config: { introspection: false } });
    const { errors } = await ask(anonymous, { query: '{ _service { sdl } }' });
    expect(errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
    expect(errors![0]!.message).toContain('schema print --subgraph');
    const entities = '{ _entities(representations: []) { __typename } me { __typename } }';
    expect((await ask(anonymous, { query: entities })).errors).toBeUndefined();
  });
});

test('__schema and __type are refused to routers too, and __typename is answered to all', async () => {
  for (const key of ['gate', 'portal']) {
    for (const query of [
      '{ __schema { types { name } } }',
      '{ a: __type(name: "Query") { name } }',
      'query { me { id } ...F } fragment F on Query { hidden: __type(name: "Vacancy") { name } }',
    ]) {
      const { data, errors } = await ask(closed, { query }, key);
      expect([data, errors![0]!.extensions.code]).toEqual([undefined, 'BAD_USER_INPUT']);
    }
    expect(
      (await ask(closed, { query: '{ __typename me { __typename } }' }, key)).errors,
    ).toBeUndefined();
  }
});

test('the values of variables are not logged, although messages to their sender contain them', async () => {
  const { errors } = await ask(closed, {
    query: 'query ($id: Int!) { candidate(id: $id) { id } }',
    variables: { id: 'somebody-private' },
  });
  expect(errors![0]!.message).toContain('somebody-private');
  expect(JSON.stringify(closed.gateway.logged)).not.toContain('somebody-private');
});

test('the introspection query of GraphiQL returns a schema', async () => {
  const { data } = await ask(open, { query: getIntrospectionQuery() });
  const schema = buildClientSchema(data as unknown as IntrospectionQuery);
  expect(validate(schema, parse('{ me { id } }'))).toEqual([]);
});

async function ask(front: Front, body: object, key = 'portal'): Promise<Body> {
  return (await (
    await fetch(`${front.url}/graphql`, post(body, { 'x-api-key': key }))
  ).json()) as Body;
}
