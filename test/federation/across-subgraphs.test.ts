import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { salaryBandOf, startSupergraph, UNKNOWN_ID } from '../support/supergraph/subgraphs.ts';

type Supergraph = Awaited<ReturnType<typeof startSupergraph>>;
let supergraph: Supergraph;
let persons: Supergraph['persons'];

beforeAll(async () => {
  supergraph = await startSupergraph();
  persons = supergraph.persons;
});
beforeEach(() => {
  supergraph.recruiting.received.length = 0;
});
afterAll(() => supergraph[Symbol.asyncDispose]());

test('connections of two subgraphs share PageInfo, and their records have fields of three', async () => {
  const { data, errors } = await supergraph.ask(
    `query ($first: Int!) {
      reviewsConnection(first: $first) {
        edges { node { author { id firstName salaryBand } } }
        pageInfo { ...Info }
      }
      personsConnection(first: $first) {
        edges { cursor node { __typename id salaryBand } }
        pageInfo { ...Info }
      }
      allPersons(limit: 200) { salaryBand }
    }
    fragment Info on PageInfo { __typename hasNextPage hasPreviousPage }`,
    { first: 3 },
  );
  expect(errors).toBeUndefined();
  const bands = persons.map(({ id }) => ({ salaryBand: salaryBandOf(id) }));
  const pageInfo = { __typename: 'PageInfo', hasNextPage: true, hasPreviousPage: false };
  const missing = { id: UNKNOWN_ID, firstName: null, salaryBand: null };
  const authors = [missing, null, { ...persons[0], ...bands[0] }];
  const cursor: unknown = expect.any(String);
  expect(data).toEqual({
    reviewsConnection: { edges: authors.map((author) => ({ node: { author } })), pageInfo },
    personsConnection: {
      edges: persons.slice(0, 3).map(({ id }, at) => ({
        cursor,
        node: { __typename: 'Person', id, ...bands[at] },
      })),
      pageInfo,
    },
    allPersons: bands.slice(0, 200),
  });
});

test('200 payslips request their persons once, in the order of the list', async () => {
  const of = persons.slice(0, 200).map(({ id }) => id);
  const query = 'query ($of: [ID!]!) { payslips(of: $of) { amount person { name: firstName } } }';
  expect(await supergraph.ask(query, { of })).toEqual({
    data: {
      payslips: persons
        .slice(0, 200)
        .map(({ firstName }, index) => ({ amount: 1000 + index, person: { name: firstName } })),
    },
  });
  const [request, ...more] = supergraph.recruiting.received;
  expect(more).toEqual([]);
  const representations = of.map((id) => ({ __typename: 'Person', id }));
  expect(Object.values(request!.body.variables!)).toEqual([representations]);
});

test('with SCHEMA_PREFIX, persons are resolved under their prefixed name, beside a PageInfo with more fields', async () => {
  await using prefixed = await startSupergraph({
    prefix: 'Recruiting',
    pageInfo: 'totalPages: Int',
  });
  const [person] = prefixed.persons;
  const { data, errors } = await prefixed.ask(
    `query ($of: [ID!]!) {
      payslips(of: $of) { person { __typename firstName } }
      reviewsConnection(first: 1) { pageInfo { __typename totalPages } }
      recruitingPersonsConnection(first: 1) {
        edges { node { ... on RecruitingPerson { id salaryBand } } }
        pageInfo { __typename hasNextPage }
      }
    }`,
    { of: [person!.id] },
  );
  expect(errors).toBeUndefined();
  expect(data).toEqual({
    payslips: [{ person: { __typename: 'RecruitingPerson', firstName: person!.firstName } }],
    reviewsConnection: { pageInfo: { __typename: 'PageInfo', totalPages: 1 } },
    recruitingPersonsConnection: {
      edges: [{ node: { id: person!.id, salaryBand: salaryBandOf(person!.id) } }],
      pageInfo: { __typename: 'RecruitingPageInfo', hasNextPage: true },
    },
  });
});
