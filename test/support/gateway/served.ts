import { readConfig } from '../../../src/config.ts';
import { withAdditions } from '../../../src/additions/with-additions.ts';
import {
  serveSnapshot,
  type SnapshotSettings,
  type ServedSchema,
} from '../../../src/schema/served/served-schema.ts';

const KEPT = 64;

const made = new Map<string, ServedSchema>();

/** The served schema, made once in a worker for all gateways of equal parts. */
export function servedOnce(
  sdl: string,
  settings: SnapshotSettings,
  overrides: unknown,
): ServedSchema {
  const { schemaPath, schemaPrefix } = settings;
  // The schema depends only on these settings, which are the key.
  const keyed: SnapshotSettings = { schemaPath, schemaPrefix };
  const key = JSON.stringify({ sdl, keyed, overrides });
  const served = made.get(key) ?? serveSnapshot(sdl, keyed, overrides);
  made.delete(key);
  made.set(key, served);
  if (made.size > KEPT) made.delete(made.keys().next().value!);
  return served;
}

interface OfflineParts {
  readonly prefix?: string | undefined;
  readonly overrides?: unknown;
}

/** The schema that is served for a schema of the service, without a gateway. */
export function servedOffline(sdl: string, { prefix, overrides }: OfflineParts = {}) {
  const settings = readConfig({}, 'server');
  return withAdditions(servedOnce(sdl, { ...settings, schemaPrefix: prefix }, overrides));
}
