import { defineConfig } from 'recruiting-subgraph';

export default defineConfig({
  typeDefs: /* GraphQL */ `
    extend type Person {
      "How a letter to the person begins."
      greeting: String!
    }
  `,
  resolvers: {
    Person: {
      greeting: {
        // Fetched whatever the caller selects, and not a part of the answer.
        selectionSet: '{ firstName }',
        resolve: ({ firstName }: { firstName: string | null }) =>
          firstName === null ? 'Good day,' : `Dear ${firstName},`,
      },
    },
  },
});
