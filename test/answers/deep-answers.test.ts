import { expect, test } from 'vitest';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { json, text } from '../support/imitations/scripted.ts';
import { fullSdl, fullService } from '../support/imitations/honest.ts';

const DEEP = 100_000;
const deep = `${'[{"a":'.repeat(DEEP / 2)}1${'}]'.repeat(DEEP / 2)}`;
const page = (extra: string) =>
  `{"items":[{"id":1,"_rsId":1,"extra":${extra}}],"pageInfo":{"hasNextPage":false,"endCursor":null}}`;

const answers: [string, string][] = [
  ['data', `{"data":{"me":${deep},"activeCandidates":${deep},"candidate":${deep}}}`],
  [
    'a custom scalar',
    `{"data":{"me":{"_rsType":"Candidate","extra":${deep}},"activeCandidates":${page(deep)}}}`,
  ],
  ['what nobody asked for', `{"data":{"me":null,"activeCandidates":${page('1')}},"more":${deep}}`],
  ['errors', `{"data":null,"errors":${deep}}`],
  ['an error', `{"data":null,"errors":[${deep}]}`],
  ['a path', `{"data":null,"errors":[{"message":"No.","path":${deep}}]}`],
  ['extensions of an error', `{"errors":[{"message":"No.","extensions":{"a":${deep}}}]}`],
  ['extensions', `{"data":{"me":null,"activeCandidates":null},"extensions":{"a":${deep}}}`],
];

test('an answer that is nested too deep is UPSTREAM_BAD_RESPONSE, wherever the nesting is', async () => {
  const { schema } = fullService();
  await using gateway = await startGatewayOverFake({ schema }, { snapshot: fullSdl });
  for (const [where, body] of answers) {
    gateway.upstream.answer(text(body));
    for (const query of QUERIES) {
      const { errors } = await gateway.ask(query);
      expect(errors, `${where}: ${query}`).toMatchObject([
        { extensions: { code: 'UPSTREAM_BAD_RESPONSE' } },
      ]);
    }
  }
});

const QUERIES = [
  '{ me { id ... on Candidate { extra } } }',
  '{ allActiveCandidates { id extra } }',
  '{ activeCandidatesConnection { nodes { extra } } }',
  '{ _entities(representations: [{ __typename: "Candidate", id: 1 }]) { ... on Candidate { extra } } }',
];

test('an answer as deep as real records is accepted', async () => {
  const { schema } = fullService();
  await using gateway = await startGatewayOverFake({ schema }, { snapshot: fullSdl });
  const extra = `${'['.repeat(400)}1${']'.repeat(400)}`;
  gateway.upstream.answer(text(`{"data":{"me":{"_rsType":"Candidate","extra":${extra}}}}`));
  const { data } = await gateway.ask('{ me { ... on Candidate { extra } } }');
  expect(JSON.stringify(data)).toBe(`{"me":{"extra":${extra}}}`);
});

test('a huge number of errors is cut to a useful number, with the count of the rest', async () => {
  const { schema } = fullService();
  await using gateway = await startGatewayOverFake({ schema }, { snapshot: fullSdl });
  const sent = Array.from({ length: 30_000 }, (_, place) => ({
    message: `Error ${place}.`,
    path: ['activeCandidates', 'items', place, 'extra'],
  }));
  gateway.upstream.answer(json({ data: { activeCandidates: null }, errors: sent }));
  const { errors = [] } = await gateway.ask('{ allActiveCandidates { extra } }');
  expect(errors).toHaveLength(3_001);
  expect(errors[0]).toMatchObject({ message: 'Error 0.', path: ['allActiveCandidates'] });
  expect(errors.at(-1)).toMatchObject({
    message: expect.stringContaining('27000 more errors'),
    extensions: { code: 'UPSTREAM_BAD_RESPONSE' },
  });
});
