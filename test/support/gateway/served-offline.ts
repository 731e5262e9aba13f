import { serveSnapshot } from '../../../src/schema/served/served-schema.ts';

interface OfflineParts {
  readonly prefix?: string | undefined;
  readonly overrides?: unknown;
}

/** The schema that is served for a schema of the service, without a gateway. */
export function servedOffline(sdl: string, { prefix, overrides }: OfflineParts = {}) {
  const settings = {
    schemaPath: 'upstream.graphql',
    schemaPrefix: prefix,
    mutations: 'off',
    connectionMax: 500,
    drainMaxItems: 1_000,
    totalCountSeconds: 300,
  } as const;
  return serveSnapshot(sdl, settings, { overrides });
}
