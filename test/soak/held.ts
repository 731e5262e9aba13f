/** Loaded into a gateway with --import: on SIGUSR2 it prints what it holds after a garbage collection. */
import process from 'node:process';

export interface Held {
  /** In bytes. */
  readonly heap: number;
  readonly sockets: number;
  readonly timers: number;
}

let looks = 0;
process.on('SIGUSR2', () => {
  gc!();
  gc!();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  const resources = process.getActiveResourcesInfo();
  const held: Held = {
    heap: heapUsed + arrayBuffers,
    sockets: resources.filter((name) => name.startsWith('TCPSocket')).length,
    timers: resources.filter((name) => name === 'Timeout').length,
  };
  looks += 1;
  process.stdout.write(`HELD ${looks} ${JSON.stringify(held)}\n`);
});
