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

type Subgraph = RecordedServer & PublishedSubgraph;

interface Options {
  /** SCHEMA_PREFIX */
  readonly prefix?: string;
  /** Fields that the PageInfo of reviews has besides Relay's. */
  readonly pageInfo?: string;
}

/** This project's subgraph over a service, and two of other teams, composed and executed in this process. */
export async function startSupergraph({ prefix = '', pageInfo }: Options = {}) {
  const apiKeys = [entryFor(ROUTER_KEY, 'router', 'read', 'drain', 'router')];
  const config = { schemaPrefix: prefix || undefined, auth: { apiKeys, jwt: undefined } };
  const gateway = await startGatewayOverService({ persons: 230 }, { config });
  const recruiting = await serveRecorded((request) => gateway.gateway.handler.fetch(request));
  const query = '{ _service { sdl } }';
  const { data } = await recruiting.ask(query, {}, { 'x-api-key': ROUTER_KEY });
  const { sdl } = data!['_service'] as { sdl: string };
  const persons = gateway.service.persons.all().map(({ id, firstName }) => ({ id, firstName }));
  const ids = persons.map(({ id }) => id);
  const person = `${prefix}Person`;
  const payroll = await startPayroll(ids, person);
  const reviews = await startReviews([UNKNOWN_ID, null, ...ids], { person, pageInfo });
  const schema = getStitchedSchemaFromSupergraphSdl({
    supergraphSdl: composed([{ ...recruiting, name: 'recruiting', sdl }, payroll, reviews]),
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
      for (const each of [recruiting, payroll, reviews, gateway]) await each[Symbol.asyncDispose]();
    },
  };
}

/** Adds a field to persons, as docs/supergraph.md shows, and refers to them from its own list. */
export const payrollSdl = (person = 'Person') => /* GraphQL */ `
  extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])

  ${blockWith('docs/supergraph.md', 'salaryBand: String').replace('type Person', `type ${person}`)}
  type Payslip { person: ${person} amount: Int! }
  type Query { payslips(of: [ID!]!): [Payslip!]! }
`;

export function salaryBandOf(id: string): string {
  return `band of ${id}`;
}

function startPayroll(ids: readonly string[], person: string) {
  return startSubgraph('payroll', payrollSdl(person), {
    Query: {
      payslips: (_: unknown, { of }: { of: string[] }) =>
        of.map((id, index) => ({ person: { id }, amount: 1000 + index })),
    },
    [person]: {
      __resolveReference: ({ id }: { id: string }) => (ids.includes(id) ? { id } : null),
      salaryBand: ({ id }: { id: string }) => salaryBandOf(id),
    },
  });
}

interface ReviewsOptions {
  /** The name of the type of persons. Default: Person */
  readonly person?: string;
  readonly pageInfo?: string | undefined;
}

/** Has connections of its own, and refers to persons without adding fields. */
export const reviewsSdl = ({
  person = 'Person',
  pageInfo = '',
}: ReviewsOptions = {}) => /* GraphQL */ `
  extend schema
    @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key", "@shareable"])

  type ${person} @key(fields: "id", resolvable: false) { id: ID! }
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

/** @param authors of one review each; null: a review without one */
export function startReviews(authors: readonly (string | null)[], options: ReviewsOptions = {}) {
  const reviewsConnection = (_: unknown, { first }: { first: number }) => ({
    edges: authors.slice(0, first).map((id, index) => ({
      cursor: String(index),
      node: { id: `review-${index}`, author: id === null ? null : { id } },
    })),
    pageInfo: { hasNextPage: first < authors.length, hasPreviousPage: false, totalPages: 1 },
  });
  return startSubgraph('reviews', reviewsSdl(options), { Query: { reviewsConnection } });
}

async function startSubgraph(
  name: string,
  sdl: string,
  resolvers: Record<string, object>,
): Promise<Subgraph> {
  const typeDefs = parse(sdl);
  const schema = buildSubgraphSchema([{ typeDefs, resolvers: resolvers as never }]);
  const yoga = createYoga({ schema, logging: false });
  return { ...(await serveRecorded((request) => yoga.fetch(request))), name, sdl };
}
