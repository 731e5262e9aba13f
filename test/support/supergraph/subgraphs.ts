import { buildSubgraphSchema } from '@apollo/subgraph';
import { getStitchedSchemaFromSupergraphSdl } from '@graphql-tools/federation';
import { graphql, parse } from 'graphql';
import { createYoga } from 'graphql-yoga';
import { blockWith } from '../docs/documents.ts';
import { entryFor } from '../gateway/api-key.ts';
import type { GraphqlAnswer } from '../gateway/ask-at.ts';
import { startGatewayOverService } from '../gateway/over-service.ts';
import { composed, type PublishedSubgraph } from './composition.ts';
import { serveRecorded, type RecordedServer } from './recorded-server.ts';

/** The credential of the router, the only one that may request entities. */
const ROUTER_KEY = 'key-of-the-router';

/** The id of a person who does not exist, to whom the first review refers. The second has no author. */
export const UNKNOWN_ID = 'nobody';

interface Options {
  /** SCHEMA_PREFIX */
  readonly prefix?: string;
  /** Fields that the PageInfo of reviews has besides Relay's. */
  readonly pageInfo?: string;
}

/** This project's subgraph over a service, and one of another team, composed and executed in this process. */
export async function startSupergraph({ prefix = '', pageInfo }: Options = {}) {
  const apiKeys = [entryFor(ROUTER_KEY, 'router', 'read', 'drain', 'router')];
  const config = { schemaPrefix: prefix || undefined, auth: { apiKeys, jwt: undefined } };
  const gateway = await startGatewayOverService({ persons: 230 }, { config });
  const recruiting = await serveRecorded((request) => gateway.gateway.handler.fetch(request));
  const query = '{ _service { sdl } }';
  const { data } = await recruiting.ask(query, {}, { 'x-api-key': ROUTER_KEY });
  const { sdl } = data!['_service'] as { sdl: string };
  const persons = gateway.service.persons.all().map(({ id, firstName }) => ({ id, firstName }));
  const authors = [UNKNOWN_ID, null, ...persons.map(({ id }) => id)];
  const reviews = await startReviews(authors, { person: `${prefix}Person`, pageInfo });
  const schema = getStitchedSchemaFromSupergraphSdl({
    supergraphSdl: composed([{ ...recruiting, name: 'recruiting', sdl }, reviews]),
    httpExecutorOpts: ({ name }) => ({
      headers: name.toLowerCase() === 'recruiting' ? { 'x-api-key': ROUTER_KEY } : {},
    }),
    batch: true,
  });
  return {
    /** All persons in their list. */
    persons,
    recruiting,
    ask: async (source: string, variableValues: Record<string, unknown> = {}) => {
      const result = await graphql({ schema, source, contextValue: {}, variableValues });
      return JSON.parse(JSON.stringify(result)) as GraphqlAnswer;
    },
    [Symbol.asyncDispose]: async () => {
      for (const each of [recruiting, reviews, gateway]) await each[Symbol.asyncDispose]();
    },
  };
}

interface ReviewsOptions {
  /** The name of the type of persons. Default: Person */
  readonly person?: string;
  readonly pageInfo?: string | undefined;
}

/** Has connections of its own, refers to persons, and adds a field to them, as docs/supergraph.md shows. */
export const reviewsSdl = ({
  person = 'Person',
  pageInfo = '',
}: ReviewsOptions = {}) => /* GraphQL */ `
  extend schema
    @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key", "@shareable"])

  ${blockWith('docs/supergraph.md', 'salaryBand: String').replace('type Person', `type ${person}`)}
  type Review { id: ID! author: ${person} }
  type ReviewConnection { edges: [ReviewEdge!]! pageInfo: PageInfo! }
  type ReviewEdge { cursor: String! node: Review! }
  type PageInfo @shareable {
    hasNextPage: Boolean!
    hasPreviousPage: Boolean!
    startCursor: String
    endCursor: String
    ${pageInfo}
  }
  type Query { reviewsConnection(first: Int!): ReviewConnection }
`;

export function salaryBandOf(id: string): string {
  return `band of ${id}`;
}

/** @param authors of one review each; null: a review without one */
export async function startReviews(
  authors: readonly (string | null)[],
  options: ReviewsOptions = {},
): Promise<RecordedServer & PublishedSubgraph> {
  const reviewsConnection = (_: unknown, { first }: { first: number }) => ({
    edges: authors.slice(0, first).map((id, index) => ({
      cursor: String(index),
      node: { id: `review-${index}`, author: id === null ? null : { id } },
    })),
    pageInfo: { hasNextPage: first < authors.length, hasPreviousPage: false, totalPages: 1 },
  });
  const sdl = reviewsSdl(options);
  const resolvers = {
    Query: { reviewsConnection },
    [options.person ?? 'Person']: { salaryBand: ({ id }: { id: string }) => salaryBandOf(id) },
  } as never;
  const schema = buildSubgraphSchema([{ typeDefs: parse(sdl), resolvers }]);
  const yoga = createYoga({ schema, logging: false });
  return { ...(await serveRecorded((request) => yoga.fetch(request))), name: 'reviews', sdl };
}
