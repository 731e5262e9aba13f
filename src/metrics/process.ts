/**
 * What Prometheus' clients tell of every process: CPU, memory, garbage collection, the lag of the event loop. They
 * are loaded, and begin to watch, when they are read for the first time: a gateway whose metrics nobody reads does not
 * pay for them.
 */
export function processMetrics(): () => Promise<string> {
  let reading: Promise<() => Promise<string>> | undefined;
  return async () => {
    reading ??= begin();
    const read = await reading;
    return await read();
  };
}

async function begin(): Promise<() => Promise<string>> {
  const { collectDefaultMetrics, Registry } = await import('prom-client');
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return () => registry.metrics();
}
