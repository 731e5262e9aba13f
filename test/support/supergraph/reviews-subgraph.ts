import { buildSubgraphSchema } from '@apollo/subgraph';
import { parse } from 'graphql';
import { createYoga } from 'graphql-yoga';
import type { PublishedSubgraph } from './composition.ts';
import { serveRecorded, type RecordedServer } from './recorded-server.ts';

/** Another team's subgraph with its own connections, which refers to persons without adding fields. */
export type ReviewsSubgraph = RecordedServer & PublishedSubgraph;

export interface ReviewsOptions {
  /** The name of the type of persons. Default: Person */
  readonly person?: string;
  /** Fields that its PageInfo has besides Relay's. */
  readonly pageInfo?: string;
}

export function reviewsSdl({ person = 'Person', pageInfo = '' }: ReviewsOptions = {}): string {
  return /* GraphQL */ `
    extend schema
      @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key", "@shareable"])

    type ${person} @key(fields: "id", resolvable: false) {
      id: ID!
    }
    type Review {
      id: ID!
      body: String!
      author: ${person}
    }
    type ReviewConnection {
      edges: [ReviewEdge!]!
      pageInfo: PageInfo!
    }
    type ReviewEdge {
      cursor: String!
      node: Review!
    }
    type PageInfo @shareable {
      hasNextPage: Boolean!
      hasPreviousPage: Boolean!
      startCursor: String
      endCursor: String
      ${pageInfo}
    }
    type Query {
      reviewsConnection(first: Int!, after: String): ReviewConnection
    }
  `;
}

/** Starts the subgraph with one review by each author. A review without an author has null. */
export async function startReviews(
  authors: readonly (string | null)[],
  options: ReviewsOptions = {},
): Promise<ReviewsSubgraph> {
  const sdl = reviewsSdl(options);
  const schema = buildSubgraphSchema([
    {
      typeDefs: parse(sdl),
      resolvers: {
        Query: {
          reviewsConnection: (_, { first, after }: { first: number; after?: string | null }) =>
            stretch(authors, after == null ? 0 : Number(after) + 1, first),
        },
      },
    },
  ]);
  const yoga = createYoga({ schema, logging: false });
  return { ...(await serveRecorded((request) => yoga.fetch(request))), name: 'reviews', sdl };
}

function stretch(authors: readonly (string | null)[], start: number, first: number) {
  const edges = authors.slice(start, start + first).map((id, index) => ({
    cursor: String(start + index),
    node: {
      id: `review-${start + index}`,
      body: `Review ${start + index}.`,
      author: id === null ? null : { id },
    },
  }));
  return {
    edges,
    pageInfo: {
      hasNextPage: start + edges.length < authors.length,
      hasPreviousPage: start > 0,
      startCursor: edges[0]?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
      totalPages: 1,
    },
  };
}
