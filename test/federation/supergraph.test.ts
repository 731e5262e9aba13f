/** The gateway as a subgraph of supergraphs, which are composed, and executed in this process. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fullSdl } from '../service/full.ts';
import { servedOffline } from '../support/gateway/served.ts';
import { compose } from '../support/supergraph/composition.ts';
import {
  reviewsSdl,
  salaryBandOf,
  startSupergraph,
  UNKNOWN_ID,
} from '../support/supergraph/subgraphs.ts';

type Supergraph = Awaited<ReturnType<typeof startSupergraph>>;
let supergraph: Supergraph;
let persons: Supergraph['persons'];
beforeAll(async () => {
  supergraph = await startSupergraph();
  persons = supergraph.persons;
});
afterAll(() => supergraph[Symbol.asyncDispose]());

test('connections of two subgraphs share PageInfo, and their records have fields of both', async () => {
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
  const missing = { id: UNKNOWN_ID, firstName: null, salaryBand: salaryBandOf(UNKNOWN_ID) };
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

test('200 reviews request their authors once, in the order of the list', async () => {
  supergraph.recruiting.received.length = 0;
  const query = '{ reviewsConnection(first: 202) { edges { node { author { firstName } } } } }';
  const known = persons.slice(0, 200);
  const authors = [{ firstName: null }, null, ...known.map(({ firstName }) => ({ firstName }))];
  expect(await supergraph.ask(query)).toEqual({
    data: { reviewsConnection: { edges: authors.map((author) => ({ node: { author } })) } },
  });
  const [request, ...more] = supergraph.recruiting.received;
  expect(more).toEqual([]);
  const ids = [UNKNOWN_ID, ...known.map(({ id }) => id)];
  const representations = ids.map((id) => ({ __typename: 'Person', id }));
  expect(Object.values(request!.body.variables!)).toEqual([representations]);
});

test('with SCHEMA_PREFIX, persons are resolved under their prefixed name, beside a PageInfo with more fields', async () => {
  await using prefixed = await startSupergraph({
    prefix: 'Recruiting',
    pageInfo: 'totalPages: Int',
  });
  const [person] = prefixed.persons;
  const { data, errors } = await prefixed.ask(`{
    reviewsConnection(first: 3) { edges { node { author { __typename firstName } } } pageInfo { totalPages } }
    recruitingPersonsConnection(first: 1) { nodes { salaryBand } pageInfo { __typename } }
  }`);
  expect(errors).toBeUndefined();
  const author = { __typename: 'RecruitingPerson', firstName: person!.firstName };
  const authors = [{ ...author, firstName: null }, null, author];
  expect(data).toEqual({
    reviewsConnection: {
      edges: authors.map((each) => ({ node: { author: each } })),
      pageInfo: { totalPages: 1 },
    },
    recruitingPersonsConnection: {
      nodes: [{ salaryBand: salaryBandOf(person!.id) }],
      pageInfo: { __typename: 'RecruitingPageInfo' },
    },
  });
});

const renamedRoots = `${readFileSync('schema/upstream.graphql', 'utf8')
  .replace('schema {', '"All about people." schema { mutation: MutationRoot')
  .replaceAll(/\bQuery\b/g, 'QueryRoot')}
  type MutationRoot { rename(id: ID!): Person }`;
const badges = `
  extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])
  type PersonItem @key(fields: "id") { id: Int! colour: String }
  type Query { badges: [PersonItem!]! }`;

/** A schema of the service, the subgraphs of other teams, and what the supergraph has. */
test.each<[string, string, string[], RegExp[]]>([
  [
    'with every feature of GraphQL composes, and keeps all of them',
    fullSdl,
    [reviewsSdl()],
    [
      /input VacancyBy @oneOf/,
      /scalar DateTime @specifiedBy/,
      /TRIAL @deprecated/,
      /union Applicant =/,
      /implements Named/,
    ],
  ],
  [
    'whose lists and records are in result unions composes with one that extends its records',
    readFileSync('schema/results.graphql', 'utf8'),
    [badges],
    [/type PersonItem \{[^}]*colour: String/],
  ],
  [
    'with renamed root types and a description composes with one that has the usual names',
    renamedRoots,
    [reviewsSdl()],
    [/type Query \{[^}]*allPersons/, /type Mutation \{/, /^(?![^]*QueryRoot)/],
  ],
])('a subgraph %s', (_, snapshot, others, expected) => {
  const subgraphs = [servedOffline(snapshot).subgraphSdl(), ...others].map((sdl, index) => ({
    name: `subgraph-${index}`,
    sdl,
    url: `http://subgraph-${index}.test/graphql`,
  }));
  const { errors, publicSdl } = compose(subgraphs);
  expect(errors).toBeUndefined();
  for (const part of expected) expect(publicSdl).toMatch(part);
});
