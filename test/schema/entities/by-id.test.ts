import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startService, type Service } from '../../service/service.ts';
import { startGateway, type TestGateway } from '../../support/gateway/gateway.ts';
import { fullSdl, fullService } from '../../support/imitations/honest.ts';

let upstream: Service;
let gateway: TestGateway;
let counted = 0;
beforeAll(async () => {
  upstream = await startService({ schema: fullService().schema });
  gateway = await startGateway(upstream, { snapshot: fullSdl });
  await gateway.ask('{ viewer { __typename } }');
});
beforeEach(() => {
  counted = upstream.received.length;
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

test('many representations cost one request for each 50 different ids, and keep their order', async () => {
  const ids = Array.from({ length: 37 }, (_, at) => 1 + at);
  const requested = [
    ...ids,
    ...ids.toReversed(),
    ...Array.from({ length: 70 }, (_, at) => 1_000 + at),
  ];
  const { data, errors } = await entities(requested.map(candidate), '... on Candidate { id }');
  expect(errors).toBeUndefined();
  expect(data._entities).toEqual(requested.map((id) => (id < 1_000 ? { id } : null)));
  expect(requests().map(({ variables }) => Object.keys(variables).length)).toEqual([50, 50, 7]);
});

test('fields that refer to the same records, with one selection, request each record once, and all together', async () => {
  const { data, errors } = await gateway.ask(
    `query ($a: [_Any!]!, $b: [_Any!]!) {
      a: _entities(representations: $a) { ...Name }
      b: _entities(representations: $b) { ...Name }
      other: _entities(representations: $b) { ... on Candidate { stage } }
    }
    fragment Name on Candidate { id name }`,
    { a: [1, 2, 3].map(candidate), b: [3, 2, 900, 4].map(candidate) },
  );
  expect(errors).toBeUndefined();
  expect(data).toEqual({
    a: [1, 2, 3].map(named),
    b: [named(3), named(2), null, named(4)],
    other: [{ stage: expect.any(String) }, { stage: expect.any(String) }, null, expect.anything()],
  });
  expect(requests().map(({ variables }) => Object.values(variables))).toEqual([
    [1, 2, 3, 900, 4],
    [3, 2, 900, 4],
  ]);
});

function named(id: number) {
  return { id, name: `Candidate ${id}` };
}

test('an id is returned as the service has it, however another subgraph writes it', async () => {
  const { data } = await entities([vacancy('3'), vacancy(3)], '... on Vacancy { id }');
  expect(data._entities).toEqual([{ id: 3 }, { id: 3 }]);
  expect(requests()).toMatchObject([{ variables: { _rsKey0: 3 } }]);
  expect(requests()[0]!.variables).not.toHaveProperty('_rsKey1');
});

describe('bad input', () => {
  const NOT = 'BAD_USER_INPUT';
  test.each([
    ['without __typename', { id: 1 }, /no `__typename`/],
    ['without id', { __typename: 'Vacancy' }, /a Vacancy has no `id`/],
    ['of a foreign type', { __typename: 'Invoice', id: 1 }, /no entity Invoice here/],
    ['of a type without an id', { __typename: 'Event', id: 1 }, /no entity Event here/],
    [
      'of a type that is not found by its id',
      { __typename: 'Company', id: 'c1' },
      /resolvable: false/,
    ],
    ['with text for a number', { __typename: 'Vacancy', id: 'x' }, /must be of the type Int/],
    [
      'with a number that is no Int',
      { __typename: 'Vacancy', id: 2 ** 40 },
      /must be of the type Int/,
    ],
    ['that is no object', 'Vacancy:1', /must be an object/],
    ['with a name that is none', { __typename: '<b>'.repeat(99), id: 1 }, /no entity of that name/],
    ['with a name of JavaScript', { __typename: '__proto__', id: 1 }, /no entity __proto__/],
  ])(
    'a representation %s has its own error, and the others are answered',
    async (_, bad, message) => {
      const all = [vacancy(1), bad, vacancy(2), bad];
      const { data, errors } = await entities(all, '... on Vacancy { id }');
      expect(data._entities).toEqual([{ id: 1 }, null, { id: 2 }, null]);
      expect(errors).toEqual(
        [1, 3].map((at) => ({
          message: expect.stringMatching(message),
          path: ['_entities', at],
          extensions: { code: NOT },
        })),
      );
      expect(requests()).toHaveLength(1);
    },
  );

  test('more than 10,000 in one operation are refused in one error', async () => {
    const { data, errors } = await gateway.ask(
      `query ($all: [_Any!]!) {
        a: _entities(representations: $all) { __typename }
        b: _entities(representations: $all) { __typename }
      }`,
      { all: Array.from({ length: 5_001 }, () => candidate(1)) },
    );
    expect(data).toBeNull();
    expect(errors).toMatchObject([{ extensions: { code: 'OPERATION_TOO_COMPLEX' } }]);
  });

  test('null instead of a representation is refused, as GraphQL requires', async () => {
    const { errors } = await entities([null], '__typename');
    expect(errors).toMatchObject([{ extensions: { code: NOT } }]);
  });
});

function entities(representations: readonly unknown[], selection: string) {
  return gateway.ask<{ _entities: (Record<string, unknown> | null)[] }>(
    `query ($representations: [_Any!]!) { _entities(representations: $representations) { ${selection} } }`,
    { representations },
  );
}

function candidate(id: number | string) {
  return { __typename: 'Candidate', id };
}

function vacancy(id: number | string) {
  return { __typename: 'Vacancy', id };
}

function requests() {
  return upstream.received
    .slice(counted)
    .map(({ body }) => JSON.parse(body) as { query: string; variables: Record<string, unknown> });
}
