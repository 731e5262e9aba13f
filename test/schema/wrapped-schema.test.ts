import { execute, parse, validate } from 'graphql';
import { expect, test } from 'vitest';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { text } from '../support/imitations/scripted.ts';
import { fullSdl, fullService } from '../support/imitations/honest.ts';

/*
 * graphql-js executes these over the wrapped schema: the upstream's schema under its served names, whose root fields are
 * delegated to the service through the executor.
 */

test('pages are read with their arguments, under served names', async () => {
  await using gateway = await startWrapped();
  const { data, errors } = await gateway.run(
    `query ($first: Int, $filter: RecruitingCandidateFilter) {
      page: recruitingCandidates(first: $first, filter: $filter) {
        __typename
        items { __typename ...Named vacancy { title(upper: true) } }
        pageInfo { first hasNextPage endCursor }
      }
    }
    fragment Named on RecruitingNamed { id name }`,
    { first: 2, filter: { stage: ['NEW', 'INTERVIEW', 'OFFER'] } },
  );
  expect(errors).toBeUndefined();
  expect(data).toMatchObject({
    page: {
      __typename: 'RecruitingCandidatePage',
      items: [
        { __typename: 'RecruitingCandidate', id: expect.any(Number) },
        { id: expect.any(Number) },
      ],
      pageInfo: { first: 2, hasNextPage: true, endCursor: expect.any(String) },
    },
  });
  const { page } = data as { page: { pageInfo: { endCursor: string }; items: unknown[] } };
  const next = await gateway.run(
    `{ recruitingCandidates(first: 2, after: "${page.pageInfo.endCursor}", filter: { stage: [NEW, INTERVIEW, OFFER] }) {
      items { id name }
    } }`,
  );
  expect(next).toMatchObject({ data: { recruitingCandidates: { items: [{}, {}] } } });
  expect(next.data!['recruitingCandidates']).not.toEqual({ items: page.items });
});

test('values of unions have the type that the service gave them, under its served name', async () => {
  await using gateway = await startWrapped();
  const { data, errors } = await gateway.run(
    `{ recruitingApplicants {
      items { __typename ... on RecruitingCandidate { id stage } ... on RecruitingRobot { model } }
    } }`,
  );
  expect(errors).toBeUndefined();
  const { items } = data!['recruitingApplicants'] as { items: { __typename: string }[] };
  expect(new Set(items.map(({ __typename }) => __typename))).toEqual(
    new Set(['RecruitingCandidate', 'RecruitingRobot']),
  );
});

test('errors of the service arrive at the path that the caller wrote, with their extensions', async () => {
  await using gateway = await startWrapped();
  const { data, errors } = await gateway.run(
    '{ broken: recruitingFailing list: recruitingCandidates(first: 7) { items { id score } } }',
  );
  expect(data).toMatchObject({ broken: null, list: { items: { 6: { id: 7, score: null } } } });
  expect(errors!.map((error) => error.toJSON())).toEqual(
    expect.arrayContaining([
      expect.objectContaining({
        message: 'This field always fails.',
        path: ['broken'],
        extensions: { code: 'ALWAYS', hint: { deep: [1] } },
      }),
      expect.objectContaining({
        message: 'No score for 7.',
        path: ['list', 'items', 6, 'score'],
        extensions: { code: 'NO_SCORE' },
      }),
    ]),
  );
});

test('a failure of the request is a coded error at the path of the field', async () => {
  await using gateway = await startWrapped();
  gateway.upstream.answer(text('<html>'));
  const { data, errors } = await gateway.run('{ me: recruitingMe { id } }');
  expect(data).toEqual({ me: null });
  expect(errors).toMatchObject([{ path: ['me'], extensions: { code: 'UPSTREAM_BAD_RESPONSE' } }]);
});

test('over the schema that callers see, graphql-js sends nothing to the service', async () => {
  await using gateway = await startWrapped();
  const { schema } = gateway.gateway.served;
  const result = await execute({ schema, document: parse('{ recruitingMe { id } }') });
  expect(result).toMatchObject({
    data: { recruitingMe: null },
    errors: [{ message: expect.stringContaining('answered by their plans') }],
  });
  expect(gateway.upstream.received).toEqual([]);
});

async function startWrapped() {
  const gateway = await startGatewayOverFake(
    { schema: fullService().schema },
    { snapshot: fullSdl, config: { schemaPrefix: 'Recruiting' }, ownSchema: true },
  );
  const { upstream: wrapped } = gateway.gateway.served;
  return {
    ...gateway,
    run: async (operation: string, variableValues: Record<string, unknown> = {}) => {
      const document = parse(operation);
      expect(validate(wrapped, document)).toEqual([]);
      const result = await execute({ schema: wrapped, document, variableValues });
      return { ...result, ...(result.data && { data: structuredClone(result.data) }) };
    },
  };
}
