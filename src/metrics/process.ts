import { collectDefaultMetrics, Registry } from 'prom-client';

/**
 * What Prometheus' clients tell of every process: CPU, memory, garbage collection, the lag of the event loop. They
 * begin to watch when they are read for the first time: a gateway whose metrics nobody reads does not pay for them.
 */
export function processMetrics(): () => Promise<string> {
  let registry: Registry | undefined;
  return () => {
    if (!registry) {
      registry = new Registry();
      collectDefaultMetrics({ register: registry });
    }
    return registry.metrics();
  };
}
