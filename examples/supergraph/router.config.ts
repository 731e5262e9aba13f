const CLIENT = ['graphql-client', 'apollographql-client'].flatMap((name) => [
  `${name}-name`,
  `${name}-version`,
]);

/** In a project that has `@graphql-hive/gateway`, pass this to its `defineConfig`, which checks the types. */
export const gatewayConfig = {
  propagateHeaders: {
    fromClientToSubgraphs: ({ request }: { request: Request }) =>
      Object.fromEntries(CLIENT.map((name) => [name, request.headers.get(name)])),
  },
  demandControl: {
    maxCost: 5_000,
    listSize: 50, // of a list without a size of its own
  },
};
