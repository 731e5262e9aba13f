import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { compose, type PublishedSubgraph } from '../support/supergraph/composition.ts';
import { payrollSdl } from '../support/supergraph/payroll-subgraph.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { reviewsSdl } from '../support/supergraph/reviews-subgraph.ts';
import { fullSdl } from '../support/imitations/honest.ts';

test('the subgraph composes with others that share PageInfo, extend Person and refer to it', async () => {
  const { errors, publicSdl } = composeAll({
    recruiting: await recruitingSdl(),
    payroll: payrollSdl(),
    reviews: reviewsSdl(),
  });
  expect(errors).toBeUndefined();
  expect(publicSdl).toMatch(/type Person \{[^}]*salaryBand: String[^}]*firstName: String/);
});

test('a schema with every feature of GraphQL composes, and keeps all of them', async () => {
  using folder = temporaryFolder();
  writeFileSync(folder.file('upstream.graphql'), fullSdl);
  const recruiting = await recruitingSdl(undefined, folder.file('upstream.graphql'));
  const { errors, publicSdl } = composeAll({ recruiting, reviews: reviewsSdl() });
  expect(errors).toBeUndefined();
  expect(publicSdl).toContain('input VacancyBy @oneOf');
  expect(publicSdl).toContain('scalar DateTime @specifiedBy');
  expect(publicSdl).toContain('TRIAL @deprecated');
  expect(publicSdl).toContain('union Applicant =');
  expect(publicSdl).toContain('implements Named');
});

test('a schema whose lists and records are in result unions composes with one that extends its records', async () => {
  const recruiting = await recruitingSdl(undefined, 'schema/results.graphql');
  const badges = `
    extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])
    type PersonItem @key(fields: "id") { id: Int! colour: String }
    type Query { badges: [PersonItem!]! }`;
  const { errors, publicSdl } = composeAll({ recruiting, badges });
  expect(errors).toBeUndefined();
  expect(publicSdl).toMatch(/type PersonItem \{[^}]*colour: String/);
});

test('a PageInfo with more fields elsewhere composes only with SCHEMA_PREFIX', async () => {
  const without = composeAll({
    recruiting: await recruitingSdl(),
    reviews: reviewsSdl({ pageInfo: 'totalPages: Int' }),
  });
  expect(without.errors?.map(String).join()).toContain('"PageInfo.totalPages"');

  const prefixed = composeAll({
    recruiting: await recruitingSdl('Recruiting'),
    reviews: reviewsSdl({ person: 'RecruitingPerson', pageInfo: 'totalPages: Int' }),
  });
  expect(prefixed.errors).toBeUndefined();
  expect(prefixed.publicSdl).toContain('type RecruitingPageInfo');
});

test('renamed root types and a schema description compose with subgraphs that have the usual names', async () => {
  using folder = temporaryFolder();
  writeFileSync(
    folder.file('upstream.graphql'),
    `${readFileSync('schema/upstream.graphql', 'utf8')
      .replace('schema {', '"All about people." schema { mutation: MutationRoot')
      .replaceAll(/\bQuery\b/g, 'QueryRoot')}
    type MutationRoot { rename(id: ID!): Person } type Query { name: String }`,
  );
  const recruiting = await recruitingSdl(undefined, folder.file('upstream.graphql'));
  expect(recruiting).toContain('query: QueryRoot\n');
  const { errors, publicSdl } = composeAll({
    recruiting,
    payroll: payrollSdl(),
    reviews: reviewsSdl(),
  });
  expect(errors).toBeUndefined();
  expect(publicSdl).toMatch(/type Query \{[^}]*allPersons/);
  expect(publicSdl).toContain('type Mutation {');
  expect(publicSdl).not.toContain('QueryRoot');
});

test('a PageInfo that the service shares with Relay composes with that of others', async () => {
  using folder = temporaryFolder();
  writeFileSync(
    folder.file('upstream.graphql'),
    `type Query { info: PageInfo }
    type PageInfo { hasNextPage: Boolean! hasPreviousPage: Boolean! startCursor: String endCursor: String }`,
  );
  const recruiting = await recruitingSdl(undefined, folder.file('upstream.graphql'));
  const { errors, publicSdl } = composeAll({ recruiting, reviews: reviewsSdl() });
  expect(errors).toBeUndefined();
  expect(publicSdl).toContain('info: PageInfo');
});

function composeAll(sdls: Record<string, string>) {
  return compose(
    Object.entries(sdls).map(([name, sdl]): PublishedSubgraph => ({
      name,
      sdl,
      url: `http://${name}.test/graphql`,
    })),
  );
}

/** The SDL that the platform team publishes. */
async function recruitingSdl(prefix?: string, RECRUITING_SCHEMA?: string): Promise<string> {
  const { code, stdout } = await runHere(['schema', 'print', '--subgraph'], {
    ...(prefix && { SCHEMA_PREFIX: prefix }),
    ...(RECRUITING_SCHEMA && { RECRUITING_SCHEMA }),
  });
  expect(code).toBe(0);
  return stdout;
}
