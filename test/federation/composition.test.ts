import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { fullSdl } from '../service/full.ts';
import { compose } from '../support/supergraph/composition.ts';
import { printedSubgraph } from '../support/supergraph/printed-subgraph.ts';
import { payrollSdl, reviewsSdl } from '../support/supergraph/subgraphs.ts';

const renamedRoots = `${readFileSync('schema/upstream.graphql', 'utf8')
  .replace('schema {', '"All about people." schema { mutation: MutationRoot')
  .replaceAll(/\bQuery\b/g, 'QueryRoot')}
  type MutationRoot { rename(id: ID!): Person } type Query { name: String }`;
const sharedPageInfo = `type Query { info: PageInfo }
  type PageInfo { hasNextPage: Boolean! hasPreviousPage: Boolean! startCursor: String endCursor: String }`;
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
    'with renamed root types and a description composes with subgraphs that have the usual names',
    renamedRoots,
    [payrollSdl(), reviewsSdl()],
    [/type Query \{[^}]*allPersons/, /type Mutation \{/, /^(?![^]*QueryRoot)/],
  ],
  [
    'whose PageInfo is shared with Relay composes with that of others',
    sharedPageInfo,
    [reviewsSdl()],
    [/info: PageInfo/],
  ],
])('a subgraph %s', async (_, snapshot, others, expected) => {
  const recruiting = await printedSubgraph({ snapshot, overrides: {} });
  const subgraphs = [recruiting, ...others].map((sdl, index) => ({
    name: `subgraph-${index}`,
    sdl,
    url: `http://subgraph-${index}.test/graphql`,
  }));
  const { errors, publicSdl } = compose(subgraphs);
  expect(errors).toBeUndefined();
  for (const part of expected) expect(publicSdl).toMatch(part);
});
