import { tracingChannel } from 'node:diagnostics_channel';
import { flushCompileCache } from 'node:module';
import type { AddressInfo, Server } from 'node:net';

// Loaded into the Hive Gateway of the tests, which takes any free port and does not print it.
tracingChannel('net.server.listen').subscribe({
  asyncEnd: (event) => {
    const { port } = (event as { server: Server }).server.address() as AddressInfo;
    console.log(`http://127.0.0.1:${port}/graphql`);
    // Node writes this cache at the end of a process, but this one is killed.
    flushCompileCache();
  },
  start: () => {},
  end: () => {},
  asyncStart: () => {},
  error: () => {},
});
