import process from 'node:process';

const CLIENT = ['graphql-client-name', 'apollographql-client-name'];

interface Propagated {
  readonly request: Request;
  readonly subgraphName: string;
}

/** In a project that has `@graphql-hive/gateway`, pass this to its `defineConfig`, which checks the types. */
export const gatewayConfig = {
  propagateHeaders: {
    fromClientToSubgraphs: ({ request, subgraphName }: Propagated) => {
      if (subgraphName !== 'recruiting') return {};
      const client = CLIENT.map((name) => [name, request.headers.get(name)]);
      return { ...Object.fromEntries(client), 'x-api-key': process.env['ROUTER_KEY'] };
    },
  },
  demandControl: {
    maxCost: 5_000,
    listSize: 50, // of a list without a size of its own
  },
};
