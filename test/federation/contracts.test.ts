import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Additions } from '../../src/stitching/additions.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { composeContract, contractOf } from '../support/supergraph/composition.ts';
import { printedSubgraph } from '../support/supergraph/printed-subgraph.ts';
import { serveRecorded, type RecordedServer } from '../support/supergraph/recorded-server.ts';
import { startRouter, type Router } from '../support/supergraph/router.ts';

const richSdl = readFileSync('schema/rich.graphql', 'utf8');
const additions: Additions = {
  typeDefs: `
    extend type Person { greeting: String! label: String! }
    extend type Candidate { isDiscussed: Boolean! }
    extend type Query { hello: String! dictionary(of: String): [String!]! }
  `,
  resolvers: {
    Person: {
      greeting: {
        selectionSet: '{ firstName }',
        resolve: ({ firstName }: { firstName: string }) => `Dear ${firstName}`,
      },
      label: { selectionSet: '{ id }', resolve: ({ id }: { id: string }) => `label ${id}` },
    },
    Candidate: {
      isDiscussed: {
        selectionSet: '{ comments(first: 1) { pageInfo { hasNextPage } } }',
        resolve: () => true,
      },
    },
    Query: { hello: () => 'hello', dictionary: () => ['a'] },
  },
};
const HIDDEN = { tags: ['hidden'] };

describe('a contract that excludes a tag', () => {
  test.each([
    ['an object type', 'Comment', /Comment/],
    [
      'the type of a root list',
      'Vacancy',
      /\b(vacancy|\w*[vV]acancies\w*|Vacancy(Page|Connection|Edge)?)\b/,
    ],
    ['an enum', 'Stage', /Stage\b|stage\b|moveCandidate/],
    ['an input type', 'NewCandidate', /NewCandidate|createCandidate/],
    ['a scalar', 'Date', /\bDate\b|openedOn/],
  ])('has nothing of %s with the tag', async (_, type, parts) => {
    const contract = contractOf(
      await printedSubgraph({ snapshot: richSdl, overrides: { types: { [type]: HIDDEN } } }),
      'hidden',
    );
    expect(contract).not.toMatch(parts);
    expect(contract).toContain('allPersons');
    expect(contract).toContain('personsConnection');
  });

  test('keeps the mutation and the other fields of an input whose optional field is hidden', async () => {
    const contract = contractOf(
      await printedSubgraph({ snapshot: richSdl, overrides: { types: { Stage: HIDDEN } } }),
      'hidden',
    );
    expect(contract).toMatch(/createCandidate\(input: NewCandidate!\)/);
    expect(contract).toMatch(/input NewCandidate \{\s*personId: ID!\s*vacancyId: ID!\s*\}/);
    expect(contract).not.toMatch(/[(\s]stage:/);
  });
});

describe('a router that serves a contract', () => {
  let gateway: TestGateway;
  let recruiting: RecordedServer;
  let router: Router;
  beforeAll(async () => {
    gateway = await startGatewayOverSandbox(
      { rich: true },
      {
        snapshot: richSdl,
        overrides: {
          types: { Comment: HIDDEN },
          fields: {
            'Query.vacancies(titleContains:)': HIDDEN,
            'Person.firstName': HIDDEN,
            'Query.dictionary(of:)': HIDDEN,
            'Query.hello': HIDDEN,
          },
        },
        additions,
        config: { mutations: 'all' },
      },
    );
    recruiting = await serveRecorded((request) => gateway.gateway.handler.fetch(request));
    const { data } = await recruiting.ask('{ _service { sdl } }');
    const { sdl } = data!['_service'] as { sdl: string };
    const { supergraphSdl } = composeContract(
      [{ name: 'recruiting', sdl, url: recruiting.url }],
      ['hidden'],
    );
    router = await startRouter({ supergraph: supergraphSdl!, env: {} });
  }, 60_000);
  afterAll(async () => {
    await router[Symbol.asyncDispose]();
    await recruiting[Symbol.asyncDispose]();
    await gateway[Symbol.asyncDispose]();
  });

  test.each([
    [
      'the page of the type',
      '{ candidates(first: 1) { items { comments { pageInfo { hasNextPage } } } } }',
    ],
    ['the derived list', '{ candidates(first: 1) { items { allComments { id } } } }'],
    [
      'the derived connection',
      '{ candidates(first: 1) { items { commentsConnection { totalCount } } } }',
    ],
    [
      'a mutation that returns the type',
      'mutation { addComment(candidateId: "1", text: "x") { __typename } }',
    ],
    ['an argument', '{ vacancies(titleContains: "a") { items { id } } }'],
    ['the argument of a derived list', '{ allVacancies(titleContains: "a") { id } }'],
    [
      'an added field that requires a field with the tag',
      '{ persons(first: 1) { items { greeting } } }',
    ],
    [
      'an added field that requires a page of the type',
      '{ candidates(first: 1) { items { isDiscussed } } }',
    ],
    ['an added field with the tag', '{ hello }'],
    ['an argument of an added field', '{ dictionary(of: "x") }'],
  ])('refuses %s, and sends nothing', async (_, query) => {
    recruiting.received.length = 0;
    const { errors, data } = await router.ask(query);
    expect(errors!.map(({ extensions }) => extensions['code'])).toEqual([
      'GRAPHQL_VALIDATION_FAILED',
    ]);
    expect(data).toBeUndefined();
    expect(recruiting.received).toEqual([]);
  });

  test('answers everything else', async () => {
    const { errors, data } = await router.ask(
      `{
        allVacancies(limit: 1) { id candidates(first: 1) { items { id stage person { id } } } }
        dictionary persons(first: 1) { items { id label } }
        vacanciesConnection(first: 1) { edges { node { id } } nodes { id } totalCount }
      }`,
    );
    expect(errors).toBeUndefined();
    expect(data).toMatchObject({
      dictionary: ['a'],
      persons: { items: [{ label: expect.stringMatching(/^label .+/) }] },
      allVacancies: [{ candidates: { items: [{ stage: expect.any(String) }] } }],
      vacanciesConnection: { edges: [{}], nodes: [{}] },
    });
    expect(await router.ask('mutation { moveCandidate(id: "1", stage: OFFER) { stage } }')).toEqual(
      {
        data: { moveCandidate: { stage: 'OFFER' } },
      },
    );
  });
});
