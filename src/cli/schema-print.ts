import { lexicographicSortSchema, printSchema } from 'graphql';
import { serveSnapshot, type SnapshotSettings } from '../schema/serve-snapshot.ts';
import type { ServedSchema } from '../schema/served/served-schema.ts';
import type { Additions } from '../stitching/additions.ts';
import { withAdditions } from '../stitching/with-additions.ts';

/** The SDL that callers see, sorted, so that two versions differ only where they do. */
export function servedSdl({ schema }: Pick<ServedSchema, 'schema'>): string {
  return `${printSchema(lexicographicSortSchema(schema))}\n`;
}

/** What is served for a snapshot, with what a company adds, to be looked at only. @throws OperatorMistake */
export function servedOffline(
  snapshot: string,
  settings: Omit<SnapshotSettings, 'mutations'>,
  overrides: unknown,
  added?: Additions,
): ServedSchema {
  const served = serveSnapshot(snapshot, { ...settings, mutations: 'off' }, overrides);
  return withAdditions(served, added) ?? served;
}
