import { lexicographicSortSchema, printSchema } from 'graphql';
import { serveSnapshot, type SnapshotSettings } from '../schema/serve-snapshot.ts';
import type { ServedSchema } from '../schema/served/served-schema.ts';

/** The SDL that callers see, sorted, so that two versions differ only where they do. */
export function servedSdl({ schema }: Pick<ServedSchema, 'schema'>): string {
  return `${printSchema(lexicographicSortSchema(schema))}\n`;
}

/** What is served for a snapshot, to be looked at only. */
export function servedOffline(
  snapshot: string,
  settings: Omit<SnapshotSettings, 'mutations'>,
  overrides: unknown,
): ServedSchema {
  return serveSnapshot(snapshot, { ...settings, mutations: 'off' }, overrides);
}
