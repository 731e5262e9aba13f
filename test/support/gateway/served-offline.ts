import { serveSnapshot } from '../../../src/schema/served/served-schema.ts';

interface OfflineParts {
  readonly prefix?: string | undefined;
  readonly overrides?: unknown;
  readonly totalCountSeconds?: number | undefined;
}

/** The schema that is served for a schema of the service, without a gateway. */
export function servedOffline(
  sdl: string,
  { prefix, overrides, totalCountSeconds = 300 }: OfflineParts = {},
) {
  const settings = {
    schemaPath: 'upstream.graphql',
    schemaPrefix: prefix,
    mutations: 'off',
    connectionMax: 500,
    drainMaxItems: 1_000,
    totalCountSeconds,
  } as const;
  return serveSnapshot(sdl, settings, { overrides });
}
