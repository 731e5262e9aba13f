import type { GatewayConfig } from 'recruiting-subgraph';

/** Lets Relay request a vacancy again by its id: see extensions/fetchable.graphql. */
export default {
  typeDefs: /* GraphQL */ `
    extend type Query {
      "The vacancy with this id."
      fetch__Vacancy(id: ID!): Vacancy
    }
  `,
  resolvers: {
    // The gateway fetches the other fields of an entity by its id.
    Query: { fetch__Vacancy: (_: unknown, { id }: { id: string }) => ({ id }) },
  },
} satisfies GatewayConfig;
