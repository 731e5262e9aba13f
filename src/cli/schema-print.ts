import { lexicographicSortSchema, printSchema } from 'graphql';
import { createServedSchema } from '../schema/served-schema.ts';
import { readSnapshot } from '../schema/snapshot.ts';

/** The SDL that callers see for a snapshot, sorted, so that two versions differ only where they do. */
export function servedSdl(
  snapshot: string,
  path: string,
  limits: { connectionMax: number; drainMaxItems: number },
): string {
  const { schema } = createServedSchema({
    snapshot: readSnapshot(snapshot, path),
    execute: () => Promise.reject(new TypeError('Nothing is asked for the sake of printing.')),
    mutations: 'off',
    ...limits,
  });
  return `${printSchema(lexicographicSortSchema(schema))}\n`;
}
