import { readFileSync } from 'node:fs';
import { buildSubgraphSchema } from '@apollo/subgraph';
import { parse } from 'graphql';
import { createYoga } from 'graphql-yoga';

/**
 * To be removed: what the gateway is going to be as a subgraph, over made-up persons.
 */
export interface RecruitingStandIn {
  readonly sdl: string;
  fetch(request: Request): Response | Promise<Response>;
}

/** The SDL that `schema print --subgraph` will give, with and without SCHEMA_PREFIX. */
export function standInSdl(prefix = ''): string {
  const served = readFileSync('schema/served.graphql', 'utf8')
    .replace(/^schema \{\n {2}query: Query\n\}/, LINK)
    .replace('type Person {', 'type Person @key(fields: "id") {')
    .replace('type PageInfo {', 'type PageInfo @shareable {')
    .replace('type Query {', 'type Query {\n  person(id: ID!): Person');
  if (prefix === '') return served;
  return served
    .replace(
      /\b(?:Person|PageInfo|PersonConnection|PersonEdge|PersonPage|UpstreamPageInfo)\b/g,
      (type) => (/[A-Z]/.test(type) ? prefix + type : type),
    )
    .replace(
      /^ {2}(allPersons|person|persons|personsConnection)\(/gm,
      (_, name: string) => `  ${rootName(prefix, name)}(`,
    );
}

export function createStandIn(count: number, prefix = ''): RecruitingStandIn {
  const sdl = standInSdl(prefix);
  const persons = Array.from({ length: count }, (_, index) => ({
    id: `p${index}`,
    firstName: index % 10 === 9 ? null : `Name ${index}`,
  }));
  const byId = new Map(persons.map((person) => [person.id, person]));
  const slice = ({ first = 50, after }: { first?: number; after?: string | null }) => {
    const start = after == null ? 0 : Number(after) + 1;
    const some = persons.slice(start, start + first);
    return {
      items: some,
      nodes: some,
      edges: some.map((node, index) => ({ node, cursor: String(start + index) })),
      totalCount: count,
      pageInfo: {
        first,
        hasNextPage: start + some.length < count,
        hasPreviousPage: start > 0,
        startCursor: String(start),
        endCursor: String(start + some.length - 1),
      },
    };
  };
  const root = {
    persons: (_: unknown, page: object) => slice(page),
    allPersons: (_: unknown, { limit }: { limit?: number }) => persons.slice(0, limit),
    personsConnection: (_: unknown, page: object) => slice(page),
    person: (_: unknown, { id }: { id: string }) => byId.get(id) ?? null,
  };
  const schema = buildSubgraphSchema([
    {
      typeDefs: parse(sdl),
      resolvers: {
        Query: Object.fromEntries(
          Object.entries(root).map(([name, resolve]) => [rootName(prefix, name), resolve]),
        ),
        [`${prefix}Person`]: {
          __resolveReference: ({ id }: { id: string }) => byId.get(id) ?? null,
        },
      },
    },
  ]);
  const yoga = createYoga({ schema, logging: false });
  return { sdl, fetch: (request) => yoga.fetch(request) };
}

const LINK =
  'extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key", "@shareable"])';

function rootName(prefix: string, name: string): string {
  return prefix === ''
    ? name
    : prefix[0]!.toLowerCase() + prefix.slice(1) + name[0]!.toUpperCase() + name.slice(1);
}
