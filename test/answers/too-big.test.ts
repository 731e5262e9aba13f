// Imports the engine's insides, and goes when the engine is replaced.
import { expect, test } from 'vitest';
import { readEnvelope } from '../../src/answers/envelope.ts';
import { parseJson, type Json } from '../../src/json.ts';
import { atOnce } from '../../src/pausable.ts';

test.each([
  ['graphql-java', { message: 'maximum query complexity exceeded 5200 > 1000' }, 1000 / 5200],
  [
    'graphql-ruby',
    { message: 'Query has complexity of 3008, which exceeds max complexity of 2500' },
    2500 / 3008,
  ],
  ['graphql-php', { message: 'Max query complexity should be 100 but got 200.' }, 0.5],
  [
    'graphql-query-complexity',
    { message: 'The query exceeds the maximum complexity of 100. Actual complexity is 220' },
    100 / 220,
  ],
  [
    'graphql-cost-analysis',
    { message: 'The query exceeds the maximum cost of 100. Actual cost is 250' },
    0.4,
  ],
  [
    'Absinthe',
    { message: 'Field persons is too complex: complexity is 105 and maximum is 100' },
    100 / 105,
  ],
  ['GraphQL Armor', { message: 'Query Cost limit of 5000 exceeded, found 10000.' }, 0.5],
  [
    'Hot Chocolate',
    {
      message: 'The maximum allowed field cost was exceeded.',
      extensions: { code: 'HC0047', fieldCost: 5611, maxFieldCost: 1000 },
    },
    1000 / 5611,
  ],
  [
    'Hot Chocolate before 14',
    {
      message: 'The maximum allowed operation complexity was exceeded.',
      extensions: { complexity: 1030, allowedComplexity: 100, code: 'HC0047' },
    },
    100 / 1030,
  ],
  [
    'Shopify',
    {
      message:
        'Query cost is 2003, which exceeds the single query max cost limit (1000).\nSee https://shopify.dev/api/usage/rate-limits for more.',
      extensions: { code: 'MAX_COST_EXCEEDED', cost: 2003, maxCost: 1000 },
    },
    1000 / 2003,
  ],
  [
    'GitHub',
    {
      type: 'MAX_NODE_LIMIT_EXCEEDED',
      message:
        'By the time this query traverses to the checkRuns connection, it is requesting up to 1,000,000 possible nodes which exceeds the maximum limit of 500,000.',
    },
    0.5,
  ],
  [
    'gqlgen',
    {
      message: 'operation has complexity 55, which exceeds the limit of 50',
      extensions: { code: 'COMPLEXITY_LIMIT_EXCEEDED' },
    },
    50 / 55,
  ],
  ['async-graphql', { message: 'Query is too complex.' }, undefined],
  [
    'Apollo Router',
    {
      message: 'query estimated cost 60 exceeded configured maximum 20',
      extensions: { code: 'COST_ESTIMATED_TOO_EXPENSIVE' },
    },
    1 / 3,
  ],
])('the refusal of %s is recognized, with its numbers', (_, error, share) => {
  expect(inAnswer({ errors: [error] })).toEqual({
    isReported: true,
    share,
    message: error.message,
  });
  expect(inAnswer({ data: null, errors: [{ message: 'No.' }, error] })?.share).toBe(share);
  expect(inAnswer({ data: { persons: null }, errors: [error] })).toBeUndefined();
});

test.each([
  'maximum query depth exceeded 16 > 15',
  'Query has depth of 9, which exceeds max depth of 8',
  'Rate limit exceeded: your cost per minute is 1000',
  'Throttled',
  'Too many requests, please try again later.',
  'Variable "$first" got invalid value 500; it exceeds 50.',
  'The cost centre 12 has no persons.',
  'Internal server error',
])('%j says nothing about the number of records', (message) => {
  expect(inAnswer({ errors: [{ message }] })).toBeUndefined();
});

test('with status 413 any error means that a request was too big, and with 502 or 504 it may', () => {
  const answer = { errors: [{ message: 'No.' }] };
  expect(inAnswer(answer, 413)).toMatchObject({ isReported: true, message: 'No.' });
  expect(inAnswer(answer, 504)).toMatchObject({ isReported: false });
  expect(inAnswer(answer, 503)).toBeUndefined();
  expect(inAnswer({ data: null }, 413)).toBeUndefined();
});

function inAnswer(answer: object, status = 200) {
  return atOnce(readEnvelope(parseJson(JSON.stringify(answer)) as Json, status)).tooBig;
}
