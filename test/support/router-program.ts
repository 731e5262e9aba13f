import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { createGatewayRuntime } from '@graphql-hive/gateway-runtime';
import type { RouterConfig } from './router.ts';

/**
 * Hive Gateway without its command line: each line of standard input is the configuration of one more
 * gateway, answered by a line with its address. The end of the input ends the process.
 */
for await (const line of createInterface({ input: process.stdin })) {
  const { supergraph, credentials } = JSON.parse(line) as RouterConfig;
  const gateway = createGatewayRuntime({
    supergraph,
    transports: { http: import('@graphql-mesh/transport-http') },
    propagateHeaders: {
      fromClientToSubgraphs: ({ subgraphName }) => ({ 'x-api-key': credentials[subgraphName] }),
    },
    graphiql: false,
    landingPage: false,
    logging: 'error',
  });
  // Otherwise a supergraph that it cannot read would only be noticed by the first query.
  await gateway.getSchema();
  const server = createServer((...exchange) => void gateway(...exchange)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`);
}
process.exit();
