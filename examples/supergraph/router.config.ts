import { defineConfig } from '@graphql-hive/gateway';

export const gatewayConfig = defineConfig({
  demandControl: {
    maxCost: 5_000, // a hundred pages: docs/supergraph.md, "What operations cost"
    // Without `limit`, Hive Gateway counts the list as one record. The sandbox has 137 persons.
    fieldCost: ({ name, arguments: given = [] }) =>
      name.value === 'allPersons' && !given.some((each) => each.name.value === 'limit') ? 137 : 0,
  },
});
