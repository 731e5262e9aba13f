import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { salaryBandOf } from '../support/supergraph/payroll-subgraph.ts';
import type { GraphqlAnswer } from '../support/gateway/ask-at.ts';
import { representationsIn } from '../support/supergraph/recorded-server.ts';
import { startSupergraph, UNKNOWN_ID, type Supergraph } from '../support/supergraph/supergraph.ts';

let supergraph: Supergraph;
let persons: Supergraph['recruiting']['persons'];

beforeAll(async () => {
  supergraph = await startSupergraph();
  persons = supergraph.recruiting.persons;
});
afterEach(() => supergraph.forget());
afterAll(async () => {
  await supergraph[Symbol.asyncDispose]();
});

describe('a query across subgraphs', () => {
  test('a person has the salary band of payroll, and 200 persons cause one request to it', async () => {
    expect(await supergraph.ask('{ allPersons(limit: 200) { firstName salaryBand } }')).toEqual({
      data: {
        allPersons: persons
          .slice(0, 200)
          .map(({ id, firstName }) => ({ firstName, salaryBand: salaryBandOf(id) })),
      },
    });
    expect(supergraph.payroll.received).toHaveLength(1);
    expect(representationsIn(supergraph.payroll.received[0]!)).toHaveLength(200);
  });

  test('200 payslips request their persons once, in the order of the list', async () => {
    const { data } = await supergraph.ask(
      '{ payrollRun(size: 200) { amount person { name: firstName } } }',
    );
    expect(data).toEqual({
      payrollRun: persons
        .slice(0, 200)
        .map(({ firstName }, index) => ({ amount: 1000 + index, person: { name: firstName } })),
    });
    const { received } = supergraph.recruiting;
    expect(received).toHaveLength(1);
    expect(representationsIn(received[0]!)).toEqual(
      persons.slice(0, 200).map(({ id }) => ({ __typename: 'Person', id })),
    );
  });

  test('connections of two subgraphs share PageInfo, and their records have fields of three', async () => {
    const { data, errors } = await supergraph.ask(
      `query ($first: Int!) {
        reviewsConnection(first: $first, after: "1") {
          edges { node { author { id firstName salaryBand } } }
          pageInfo { ...Info }
        }
        personsConnection(first: $first) {
          edges { cursor node { __typename id salaryBand } }
          pageInfo { ...Info }
        }
      }
      fragment Info on PageInfo { __typename hasNextPage hasPreviousPage startCursor endCursor }`,
      { first: 2 },
    );
    expect(errors).toBeUndefined();
    const info = {
      __typename: 'PageInfo',
      hasNextPage: true,
      startCursor: expect.any(String),
      endCursor: expect.any(String),
    };
    expect(data).toEqual({
      reviewsConnection: {
        edges: persons.slice(0, 2).map((person) => ({
          node: { author: { ...person, salaryBand: salaryBandOf(person.id) } },
        })),
        pageInfo: { ...info, hasPreviousPage: true },
      },
      personsConnection: {
        edges: persons.slice(0, 2).map(({ id }) => ({
          cursor: expect.any(String),
          node: { __typename: 'Person', id, salaryBand: salaryBandOf(id) },
        })),
        pageInfo: { ...info, hasPreviousPage: false },
      },
    });
  });
});

describe('what is missing, and what fails', () => {
  test('a reference to an unknown person is null, and does not affect others', async () => {
    const [person] = persons;
    expect(
      await supergraph.ask(
        `query ($of: [ID!]!) {
          payslips(of: $of) { amount person { id firstName } }
          reviewsConnection(first: 2) { edges { node { id author { firstName } } } }
        }`,
        { of: [person!.id, UNKNOWN_ID] },
      ),
    ).toEqual({
      data: {
        payslips: [
          { amount: 1000, person },
          { amount: 1001, person: { id: UNKNOWN_ID, firstName: null } },
        ],
        reviewsConnection: {
          edges: [
            { node: { id: 'review-0', author: { firstName: null } } },
            { node: { id: 'review-1', author: null } },
          ],
        },
      },
    });
  });

  test('a person that cannot be read does not affect the other payslips, and has our code at its path', async () => {
    const [first, second, third] = persons;
    using _ = supergraph.recruiting.amend(failEntity(1));
    const { data, errors } = await supergraph.ask(
      'query ($of: [ID!]!) { payslips(of: $of) { person { firstName } } }',
      { of: [first!.id, second!.id, third!.id] },
    );
    expect(data).toEqual({
      payslips: [first, second, third].map((person) => ({
        person: { firstName: person === second ? null : person!.firstName },
      })),
    });
    expect(errors).toEqual([
      expect.objectContaining({
        path: ['payslips', 1, 'person', 'firstName'],
        extensions: expect.objectContaining({ code: 'UPSTREAM_TIMEOUT' }),
      }),
    ]);
  });

  test('if the whole list fails, the fields of other subgraphs are still answered', async () => {
    using _ = supergraph.recruiting.amend((answer) => {
      answer.data = { allPersons: null };
      answer.errors = [
        {
          message: 'The list broke off.',
          path: ['allPersons'],
          extensions: { code: 'DRAIN_INTERRUPTED', drained: 3, resumeAfter: 'here' },
        },
      ];
    });
    const { data, errors } = await supergraph.ask(
      '{ allPersons { firstName } payrollRun(size: 1) { amount } }',
    );
    expect(data).toEqual({ allPersons: null, payrollRun: [{ amount: 1000 }] });
    expect(errors).toEqual([
      expect.objectContaining({
        path: ['allPersons'],
        extensions: expect.objectContaining({ drained: 3, resumeAfter: 'here' }),
      }),
    ]);
  });
});

test('with SCHEMA_PREFIX, persons are resolved under their prefixed name, beside a PageInfo with more fields', async () => {
  await using prefixed = await startSupergraph({
    prefix: 'Recruiting',
    pageInfo: 'totalPages: Int',
  });
  const [person] = prefixed.recruiting.persons;
  const { data, errors } = await prefixed.ask(
    `{
      payrollRun(size: 1) { person { __typename firstName } }
      reviewsConnection(first: 1) { pageInfo { __typename totalPages } }
      recruitingPersonsConnection(first: 1) {
        edges { node { ... on RecruitingPerson { id salaryBand } } }
        pageInfo { __typename hasNextPage }
      }
    }`,
  );
  expect(errors).toBeUndefined();
  expect(data).toEqual({
    payrollRun: [{ person: { __typename: 'RecruitingPerson', firstName: person!.firstName } }],
    reviewsConnection: { pageInfo: { __typename: 'PageInfo', totalPages: 1 } },
    recruitingPersonsConnection: {
      edges: [{ node: { id: person!.id, salaryBand: salaryBandOf(person!.id) } }],
      pageInfo: { __typename: 'RecruitingPageInfo', hasNextPage: true },
    },
  });
});

/** Makes one entity of an answer fail, under whatever alias `_entities` has. */
function failEntity(place: number) {
  return (answer: GraphqlAnswer) => {
    const [key, entities] = Object.entries(answer.data!)[0]! as [string, unknown[]];
    entities[place] = null;
    answer.errors = [
      { message: 'No answer.', path: [key, place], extensions: { code: 'UPSTREAM_TIMEOUT' } },
    ];
  };
}
