import { tracingChannel } from 'node:diagnostics_channel';
import { defineConfig } from '@graphql-hive/gateway';

export const gatewayConfig = defineConfig({
  graphiql: false,
  landingPage: false,
  logging: 'error',
});

// It takes any free port, and does not print it.
tracingChannel('net.server.listen').subscribe({
  asyncEnd: ({ server }) => console.log(`http://127.0.0.1:${server.address().port}/graphql`),
});
