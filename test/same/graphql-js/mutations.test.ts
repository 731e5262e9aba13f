import { expect, test } from 'vitest';
import { makeExecutableSchema } from '../../support/imitations/honest.ts';
import { sameAnswers, sideBySide } from '../side-by-side.ts';

sameAnswers('mutations', numbers, [
  [
    'are executed one after the other',
    'data',
    `mutation M {
      first: now(to: 1) { number } second: later(to: 2) { number } third: now(to: 3) { number }
      fourth: later(to: 4) { number } fifth: now(to: 5) { number }
    }`,
  ],
  [
    'go on after one that failed',
    'errors',
    `mutation {
      first: now(to: 1) { number } second: fails(to: 2) { number } third: later(to: 3) { number }
      fourth: failsLater(to: 4) { number } fifth: now(to: 5) { number } sixth: fails(to: 6) { number }
    }`,
  ],
  [
    'end at one that may not be null',
    'errors',
    'mutation { a: now(to: 1) { number } strict(to: 2) { number } b: now(to: 3) { number } }',
  ],
  [
    'in fragments',
    'data',
    'mutation { ...F ... on Mutation { b: now(to: 3) { number } } } fragment F on Mutation { a: later(to: 2) { number __typename } __typename }',
  ],
  [
    'with variables',
    'data',
    'mutation ($to: Int!) { a: now(to: $to) { number } b: now(to: $to) { x: number } }',
    { variables: { to: 9 } },
  ],
  [
    'skipped ones',
    'data',
    'mutation ($no: Boolean!) { a: now(to: 1) @skip(if: true) { number } b: now(to: 2) @include(if: $no) { number } c: now(to: 3) { number } }',
    { variables: { no: false } },
  ],
  ['only the name of the type', 'data', 'mutation { __typename }'],
  ['that do not exist', 'refused', 'mutation { thisIsIllegal }'],
]);

test('each mutation is executed once, in the order of the operation, in one request', async () => {
  const { schema, seen } = numbers();
  const world = await sideBySide({ schema });
  const query = `mutation { a: later(to: 1) { number } ...F c: now(to: 3) { number } a: later(to: 1) { again: number } }
    fragment F on Mutation { b: fails(to: 2) { number } }`;
  const { data } = await world.through({ query });
  expect(seen).toEqual([1, 2, 3]);
  expect(data).toBe('{"a":{"number":1,"again":1},"b":null,"c":{"number":3}}');
});

function numbers() {
  const seen: number[] = [];
  const state = { number: 0 };
  const put = ({ to }: { to: number }) => {
    seen.push(to);
    state.number = to;
    return { number: to };
  };
  const fail = (_: unknown, args: { to: number }) => {
    put(args);
    throw new Error(`Cannot change the number to ${args.to}.`);
  };
  const schema = makeExecutableSchema(
    `type Query { number: Int }
     type Holder { number: Int }
     type Mutation {
       now(to: Int!): Holder later(to: Int!): Holder fails(to: Int!): Holder failsLater(to: Int!): Holder
       strict(to: Int!): Holder!
     }`,
    {
      Mutation: {
        now: (_: unknown, args: { to: number }) => put(args),
        later: async (_: unknown, args: { to: number }) => {
          await new Promise(setImmediate);
          return put(args);
        },
        fails: fail,
        failsLater: async (...args: Parameters<typeof fail>) => {
          await new Promise(setImmediate);
          return fail(...args);
        },
        strict: fail,
      },
    },
  );
  return { schema, seen };
}
