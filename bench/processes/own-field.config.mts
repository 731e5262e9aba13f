export default {
  typeDefs: 'extend type Person { greeting: String! }',
  resolvers: {
    Person: {
      greeting: {
        selectionSet: '{ firstName }',
        resolve: ({ firstName }: { firstName: string | null }) => `Hello ${firstName}`,
      },
    },
  },
};
