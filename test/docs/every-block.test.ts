import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { blocksOf, DOCUMENTS } from '../support/docs/documents.ts';

/** The blocks that each test runs: the document, and something that only this block contains. */
const RUN: Record<string, Record<string, readonly string[]>> = {
  'test/docs/commands.test.ts: the first command of the README': {
    'README.md': ['npm ci && npm start'],
  },
  'test/docs/commands.test.ts: the commands of the README lead from a token link': {
    'README.md': ['export RECRUITING_URL'],
    'docs/authentication.md': ['x-api-key: rsk_…'],
  },
  'test/docs/commands.test.ts: the other commands of the gateway': {
    'README.md': ['schema print --subgraph'],
    'docs/authentication.md': ['keys new importer', 'keys new router'],
    'docs/export.md': ['made-up.csv', 'EXPORT_API_KEY=rsk'],
    'docs/relay.md': ['schema print'],
    'docs/sandbox.md': ['schema explain'],
    'docs/supergraph.md': ['keys new router'],
  },
  'test/docs/commands.test.ts: the requests of the documentation': {
    'docs/front-door.md': ['curl -G'],
    'docs/operations.md': ['documentId'],
  },
  'test/docs/commands.test.ts: the benchmarks and the tests in commands': {
    'docs/performance.md': ['npm run bench'],
    'docs/running.md': ['npm test --'],
  },
  'test/docs/operations.test.ts: the operations of the README': {
    'README.md': ['allPersons(limit: 200)', 'query People', 'person(id:'],
  },
  'test/docs/operations.test.ts: the type by which another subgraph extends persons': {
    'docs/supergraph.md': ['salaryBand: String'],
  },
  'test/docs/configurations.test.ts: the entries of keys': {
    'docs/authentication.md': ['portal:<sha256'],
  },
  'test/docs/configurations.test.ts: the adapters.json': { 'docs/schema.md': ['"everybody"'] },
  'test/federation/scopes.test.ts: the adapters.json of the documentation': {
    'docs/authentication.md': ['keys new payroll'],
    'docs/schema.md': ['"Person.contacts"'],
    'docs/supergraph.md': ['contacts: Contacts'],
  },
  'test/docs/configurations.test.ts: the configurations of routers': {
    'docs/supergraph.md': [
      '# supergraph.yaml',
      'include_subgraph_errors',
      '# router.config.yaml',
      '# graph.yaml',
      '# config.yaml',
      'demand_control:',
    ],
  },
  'test/docs/configurations.test.ts: the secret of docs/running.md': {
    'docs/running.md': ['kubectl create secret'],
  },
  'test/docs/configurations.test.ts: issuer.mjs of docs/sandbox.md': {
    'docs/sandbox.md': ['// issuer.mjs', 'AUTH_JWKS_URL=', 'sandbox --port 4300'],
  },
  'test/docs/extending.test.ts: the field of the README': {
    'README.md': ["'extend type Person"],
  },
  'test/docs/extending.test.ts: the first block': {
    'docs/extending.md': ['plugins: [], //'],
  },
  'test/docs/extending.test.ts: the plugins of docs/extending.md': {
    'docs/extending.md': ['useResponseCache({'],
  },
  'test/docs/extending.test.ts: the field of docs/extending.md': {
    'docs/extending.md': ['initial: String'],
  },
  'test/docs/extending.test.ts: the service of docs/extending.md': {
    'docs/extending.md': ['subschemas: [\n', '# reviews.graphql'],
  },
  'test/deploy/image.nightly.test.ts: the image of docs/extending.md': {
    'docs/extending.md': ['FROM recruiting-subgraph'],
  },
  'test/export/failures.test.ts: the recipes of the README': {
    'README.md': ['# One record a line'],
  },
  'test/export/scheduled.test.ts: the line for cron': {
    'docs/export.md': ['17 2 * * *'],
  },
  'test/cli/sandbox-docs.test.ts: the sandbox with keys prints settings': {
    'docs/sandbox.md': ['--keys'],
  },
  'test/cli/sandbox-docs.test.ts: the operations of docs/sandbox.md': {
    'docs/sandbox.md': ['vacanciesConnection', 'allCandidates', 'moveCandidate'],
  },
  'test/cli/sandbox-docs.test.ts: the sandbox with results is started': {
    'docs/sandbox.md': ['--max-cost', 'missing: person', 'allPersons(limit: 137)'],
  },
  'test/cli/sandbox-docs.test.ts: the loss of the tokens can be rehearsed': {
    'docs/sandbox.md': ['--state', 'ALLOW_ANONYMOUS', '/account/revoke', 'tokens recover'],
  },
  'test/clients/streaming-matrix.test.ts: the command of docs/streaming.md': {
    'docs/streaming.md': ['curl -N'],
  },
  'test/schema/entities/node-interface.test.ts: person(id:) and representations take': {
    'docs/relay.md': ['query Again'],
  },
  'test/federation/router.nightly.test.ts: Hive Gateway, configured as documented': {
    'docs/supergraph.md': ['// router.config.ts'],
  },
  'test/federation/router-scopes.nightly.test.ts: Hive Gateway': {
    'docs/supergraph.md': ['genericAuth: {'],
  },
  'test/library/packed.test.ts: the programs of docs/library.md': {
    'docs/library.md': ['// server.ts', '// yoga.ts'],
  },
  'test/simulate/simulate.test.ts: a seed gives the same history': {
    'docs/running.md': ['npm run simulate'],
  },
  'test/tokens/store/postgres-faults.test.ts: a role without the right to create tables': {
    'docs/tokens.md': ['GRANT USAGE'],
  },
};

/** Blocks that need a program, a package or an account that the tests do not have. */
const NOT_RUN: Record<string, readonly string[]> = {
  // Docker. test/deploy/image.nightly.test.ts builds and starts what the Dockerfile says, without it.
  'docs/running.md': [
    'docker build --tag',
    'docker buildx',
    // systemd.
    '# /etc/systemd/system',
    'systemctl enable',
  ],
  // Packages that this project does not have. test/clients/examples.test.ts runs the options that it uses.
  'examples/README.md': ['useInfiniteQuery(peoplePages(client))'],
  // The instrumentations of OpenTelemetry.
  'docs/telemetry.md': ['auto-instrumentations-node/register'],
  // DuckDB.
  'docs/export.md': ['read_ndjson_objects('],
  // GraphQL Inspector's command line, which npx downloads.
  'docs/schema.md': ['@graphql-inspector/cli'],
  // Accounts at Apollo, Hive and Cosmo, and their command lines.
  'docs/supergraph.md': [
    'rover subgraph',
    'hive schema:check',
    'hive-gateway supergraph',
    'npx wgc subgraph',
    '# .github/workflows',
  ],
};

const DRAWINGS = ['mermaid', 'text'];

test('every block of the documentation is run by one test, or is listed with the reason why not', () => {
  const listed = [...Object.values(RUN), NOT_RUN].flatMap((documents) =>
    Object.entries(documents).flatMap(([document, contents]) =>
      contents.map((content) => ({ document, content })),
    ),
  );
  const blocks = DOCUMENTS.flatMap(blocksOf).filter(({ language }) => !DRAWINGS.includes(language));
  const notOnce = blocks.filter(
    ({ document, text }) =>
      listed.filter((each) => each.document === document && text.includes(each.content)).length !==
      1,
  );
  expect(notOnce).toEqual([]);
  expect(listed).toHaveLength(blocks.length);
});

test('the tests that run the blocks exist', () => {
  const missing = Object.keys(RUN).filter((name) => {
    const [file, title] = name.split(': ') as [string, string];
    return !readFileSync(file, 'utf8').includes(`'${title}`);
  });
  expect(missing).toEqual([]);
});
