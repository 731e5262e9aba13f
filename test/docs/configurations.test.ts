import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readConfig, variables } from '../../src/config.ts';
import { blocksOf, blockWith, DOCUMENTS, inlineCode } from '../support/docs/documents.ts';
import { servedOffline } from '../support/gateway/served-offline.ts';

test('every value of a setting in the documentation is one that the gateway accepts', () => {
  const shell = DOCUMENTS.flatMap(blocksOf).filter(({ language }) => language === 'sh');
  const codes = [
    ...DOCUMENTS.flatMap(inlineCode),
    ...shell.flatMap(({ text }) => text.match(/\b[A-Z_]+=\S+/g) ?? []),
  ];
  const settings = codes.flatMap((code) => {
    const [, name, value] = /^([A-Z_]+)=([^\s…$]+)$/.exec(code) ?? [];
    return name !== undefined && name in variables.shape && !value!.includes('<')
      ? [[name, value!] as const]
      : [];
  });
  expect(settings.length).toBeGreaterThan(10);
  const refused = settings.filter(
    ([name, value]) => !variables.safeParse({ [name]: value }).success,
  );
  expect(refused).toEqual([]);
  expect(variables.safeParse({ GRAPHIQL: 'yes' }).success).toBe(false);
});

test('the entries of keys in docs/callers.md are read, once they have their hashes', () => {
  const entries = blockWith('docs/callers.md', 'portal:<sha256');
  let hash = 0;
  const AUTH_API_KEYS = entries
    .trim()
    .replaceAll(/<sha256[^>]*>/g, () => String((hash += 1)).padStart(64, '0'));
  const { auth } = readConfig({ RECRUITING_URL: 'https://a.example', AUTH_API_KEYS }, () => '');
  expect(auth!.apiKeys).toMatchObject([
    { name: 'portal', scopes: ['read'] },
    { name: 'importer', scopes: ['read', 'write'] },
  ]);
});

test('the adapters.json of docs/schema.md decides, skips and finds what its table says', () => {
  const overrides = JSON.parse(blockWith('docs/schema.md', '"byId": "vacancyById"')) as unknown;
  const sdl = `
    type Query {
      persons(first: Int, after: String): PersonPage!
      activeCandidates(first: Int, after: String): CandidatePage!
      candidate(id: ID!): Candidate
      vacancy(id: ID!): Vacancy
      vacancyById(id: ID!): Vacancy
    }
    type Person { id: ID! }
    type Candidate { id: ID! }
    type Vacancy { id: ID! candidates(first: Int, after: String): CandidatePage! }
    type PersonPage { items: [Person!]! pageInfo: PageInfo! total: Int }
    type CandidatePage { items: [Candidate!]! pageInfo: PageInfo! }
    type PageInfo { hasNextPage: Boolean! endCursor: String }`;
  const { adapters, nested, entities } = servedOffline(sdl, { overrides });
  expect(adapters[0]).toMatchObject({ name: 'persons', page: 20, count: 'total' });
  expect(nested).toEqual([]);
  const ways = Object.fromEntries(entities.map(({ type, ...entity }) => [type, entity]));
  expect(JSON.stringify(ways['Vacancy'])).toContain('"vacancyById"');
  expect(JSON.stringify(ways['Candidate'])).toContain('"activeCandidates"');
});

test('the configurations of routers send the key to this subgraph only, and forward the names of clients', () => {
  const blocks = blocksOf('docs/supergraph.md').filter(({ language }) => language === 'yaml');
  const files = blocks.map(({ text }) => parse(text) as RouterFile);
  const headers = files.flatMap((file) => (file.headers === undefined ? [] : [file.headers]));
  expect(headers).toHaveLength(3);
  for (const { subgraphs, ...others } of headers) {
    expect(others).toEqual({});
    expect(Object.keys(subgraphs)).toEqual(['recruiting']);
    const [{ insert, ...rule }, forwarding] = subgraphs['recruiting']!.request;
    const { name, value, expression } = insert ?? rule;
    expect(name!.toLowerCase()).toBe('x-api-key');
    expect(value ?? expression).toContain('RECRUITING_KEY');
    const { matching } = forwarding!.propagate ?? forwarding!;
    const forwarded = new RegExp(matching!.replace('(?i)', ''));
    const sent = [...CLIENT_HEADERS, 'x-api-key', 'authorization', 'cookie'];
    expect(sent.filter((each) => forwarded.test(each))).toEqual(CLIENT_HEADERS);
  }
});

const CLIENT_HEADERS = ['graphql-client', 'apollographql-client'].flatMap((name) => [
  `${name}-name`,
  `${name}-version`,
]);

interface RouterFile {
  readonly headers?: {
    readonly subgraphs: Record<string, { readonly request: [HeaderRule, HeaderRule?] }>;
  };
}

interface HeaderRule extends Header {
  readonly insert?: Header;
  readonly propagate?: Header;
}

interface Header {
  readonly name?: string;
  readonly value?: string;
  readonly expression?: string;
  /** A regular expression for names. */
  readonly matching?: string;
}

test('the secret of docs/operating.md has all that the manifest of Kubernetes requires of it', () => {
  const command = blockWith('docs/operating.md', 'kubectl create secret');
  const [, path] = /apply --filename (\S+)/.exec(command)!;
  const [, name] = /create secret generic (\S+)/.exec(command)!;
  const keys = [...command.matchAll(/--from-literal=([a-z-]+)=/g)].map(([, key]) => key);
  const manifest = readFileSync(path!, 'utf8');
  expect(manifest).toContain(`secretName: ${name}`);
  const files = [...manifest.matchAll(/value: \/run\/secrets\/recruiting\/([a-z-]+)/g)];
  expect(new Set(keys)).toEqual(new Set(files.map(([, key]) => key)));
});
