import { defineConfig } from '@graphql-hive/gateway';
import { costOfWholeList, removeNullLimits } from './costs.ts';

const CLIENT = ['graphql-client', 'apollographql-client'].flatMap((name) => [
  `${name}-name`,
  `${name}-version`,
]);

export const gatewayConfig = defineConfig({
  propagateHeaders: {
    fromClientToSubgraphs: ({ request }) =>
      Object.fromEntries(CLIENT.map((name) => [name, request.headers.get(name)])),
  },
  demandControl: {
    maxCost: 5_000, // a hundred pages: docs/supergraph.md, "What operations cost"
    fieldCost: costOfWholeList,
  },
  plugins: () => [removeNullLimits],
});
