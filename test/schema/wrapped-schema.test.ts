import { execute, parse, validate } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import { text } from '../support/imitations/scripted.ts';
import { fullSdl, fullService } from '../support/imitations/honest.ts';

/*
 * graphql-js executes these over the wrapped schema: the upstream's schema under its served names, whose root fields are
 * delegated to the service through the executor.
 */
let gateway: GatewayOverFake;
beforeAll(async () => {
  gateway = await startGatewayOverFake(
    { schema: fullService().schema },
    { snapshot: fullSdl, config: { schemaPrefix: 'Recruiting' }, ownSchema: true },
  );
});
afterAll(() => gateway[Symbol.asyncDispose]());

test('pages are read with their arguments, under served names, and errors of the service arrive at their paths', async () => {
  const { data, errors } = await run(
    `query ($first: Int) {
      broken: recruitingFailing
      page: recruitingCandidates(first: $first) {
        __typename
        items { __typename ...Named score }
        pageInfo { first hasNextPage }
      }
      either: recruitingApplicants(first: 1) { items { __typename ... on RecruitingCandidate { id } } }
    }
    fragment Named on RecruitingNamed { id name }`,
    { first: 7 },
  );
  expect(data).toMatchObject({
    broken: null,
    page: {
      __typename: 'RecruitingCandidatePage',
      items: { 6: { __typename: 'RecruitingCandidate', id: 7, score: null } },
      pageInfo: { first: 7, hasNextPage: true },
    },
    either: { items: [{ __typename: expect.stringMatching(/^Recruiting(Candidate|Robot)$/) }] },
  });
  expect(errors!.map((error) => error.toJSON())).toEqual([
    expect.objectContaining({
      message: 'This field always fails.',
      path: ['broken'],
      extensions: { code: 'ALWAYS', hint: { deep: [1] } },
    }),
    expect.objectContaining({
      message: 'No score for 7.',
      path: ['page', 'items', 6, 'score'],
      extensions: { code: 'NO_SCORE' },
    }),
  ]);
});

test('a failure of the request is a coded error at the path of the field', async () => {
  gateway.upstream.answer(text('<html>'));
  const { data, errors } = await run('{ me: recruitingMe { id } }');
  expect(data).toEqual({ me: null });
  expect(errors).toMatchObject([{ path: ['me'], extensions: { code: 'UPSTREAM_BAD_RESPONSE' } }]);
});

test('over the schema that callers see, graphql-js sends nothing to the service', async () => {
  const before = gateway.upstream.received.length;
  const { schema } = gateway.gateway.offered;
  const result = await execute({ schema, document: parse('{ recruitingMe { id } }') });
  expect(result).toMatchObject({
    data: { recruitingMe: null },
    errors: [{ message: expect.stringContaining('answered by their plans') }],
  });
  expect(gateway.upstream.received).toHaveLength(before);
});

async function run(operation: string, variableValues: Record<string, unknown> = {}) {
  const { upstream: schema } = gateway.gateway.offered;
  const document = parse(operation);
  expect(validate(schema, document)).toEqual([]);
  const result = await execute({ schema, document, variableValues });
  return { ...result, ...(result.data && { data: structuredClone(result.data) }) };
}
