import { end, endpointIn, hasEnded, messageOf, pathOf, start, tell } from './child-processes.ts';
import type { StartOptions } from './child-processes.ts';
import type { Server } from './gateway.ts';
import type { Service } from './services.ts';

/** Yoga, stitching and an HTTP executor, put together as their documentation shows. */
export async function startDocumented(service: Service): Promise<Server> {
  return await startPeer('peers/documented.mjs', { args: [service.endpoint, service.token] });
}

/** Hive Gateway in its fastest configuration for one service: a proxy that has the schema. */
export async function startHive(service: Service): Promise<Server> {
  const config = ['--config-path', pathOf('peers/hive-config.mjs')];
  const options = ['--host', '127.0.0.1', '--port', '0', '--disable-websockets'];
  const schema = ['--schema', pathOf('../schema/upstream.graphql')];
  return await startPeer('node_modules/.bin/hive-gateway', {
    args: ['proxy', service.endpoint, ...schema, ...options, ...config],
  });
}

/** Forwards bytes without looking at them. */
export async function startBareProxy(service: Service): Promise<Server> {
  return await startPeer('peers/bare-proxy.mjs', { args: [service.endpoint, service.token] });
}

interface BareLoop extends AsyncDisposable {
  readonly pid: number;
  /** Milliseconds for the whole list. Throws unless the list has this many persons. */
  read(persons: number): Promise<number>;
}

/** A process that reads the whole list in a loop when it is told to. */
export async function startBareLoop(service: Service): Promise<BareLoop> {
  const child = start('peers/bare-loop.mjs', { args: [service.endpoint, service.token] });
  await messageOf(child);
  return {
    pid: child.pid!,
    read: async (persons) => {
      const got = (await tell(child, 'read')) as { ms: number; persons: number };
      if (got.persons !== persons) throw new Error(`The bare loop read ${got.persons} persons.`);
      return got.ms;
    },
    [Symbol.asyncDispose]: () => end(child),
  };
}

async function startPeer(file: string, options: StartOptions): Promise<Server> {
  const env = { NODE_ENV: 'production', ...options.env };
  const child = start(file, { ...options, env });
  return {
    endpoint: await endpointIn(child),
    headers: {},
    pid: child.pid!,
    hasEnded: () => hasEnded(child),
    [Symbol.asyncDispose]: () => end(child),
  };
}
