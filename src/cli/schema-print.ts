import { lexicographicSortSchema, printSchema } from 'graphql';
import type { Config } from '../config.ts';
import { createServedSchema, type ServedSchema } from '../schema/served/served-schema.ts';
import { readSnapshot } from '../schema/snapshot.ts';

type Settings = Pick<
  Config,
  | 'schemaPath'
  | 'schemaPrefix'
  | 'nodeInterface'
  | 'federationVersion'
  | 'connectionMax'
  | 'drainMaxItems'
>;

/** The SDL that callers see, sorted, so that two versions differ only where they do. */
export function servedSdl({ schema }: Pick<ServedSchema, 'schema'>): string {
  return `${printSchema(lexicographicSortSchema(schema))}\n`;
}

/** What is served for a snapshot, to be looked at only. */
export function servedOffline(
  snapshot: string,
  { schemaPath, schemaPrefix, ...settings }: Settings,
  overrides: unknown,
): ServedSchema {
  return createServedSchema({
    snapshot: readSnapshot(snapshot, schemaPath),
    mutations: 'off',
    overrides,
    ...settings,
    prefix: schemaPrefix,
  });
}
