import { tracingChannel } from 'node:diagnostics_channel';
import type { AddressInfo, Server } from 'node:net';
import { defineConfig } from '@graphql-hive/gateway';

/*
 * The configuration of the Hive Gateway of the tests. What it sends the subgraphs as `x-api-key` is in its
 * environment, by their names.
 */
const credentials = JSON.parse(process.env['ROUTER_CREDENTIALS'] ?? '{}') as Record<string, string>;

export const gatewayConfig = defineConfig({
  propagateHeaders: {
    fromClientToSubgraphs: ({ subgraphName }) => ({ 'x-api-key': credentials[subgraphName] }),
  },
  graphiql: false,
  landingPage: false,
  logging: 'error',
});

// It uses any free port, and does not report which.
tracingChannel('net.server.listen').subscribe({
  asyncEnd: (event) => {
    const { port } = (event as { server: Server }).server.address() as AddressInfo;
    console.log(`http://127.0.0.1:${port}/graphql`);
  },
  start: () => {},
  end: () => {},
  asyncStart: () => {},
  error: () => {},
});
