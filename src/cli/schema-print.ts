import { lexicographicSortSchema, printSchema } from 'graphql';
import { createServedSchema, type ServedSchema } from '../schema/served-schema.ts';
import { readSnapshot } from '../schema/snapshot.ts';

export interface Limits {
  readonly connectionMax: number;
  readonly drainMaxItems: number;
}

/** The SDL that callers see for a snapshot, sorted, so that two versions differ only where they do. */
export function servedSdl(
  snapshot: string,
  path: string,
  limits: Limits,
  overrides?: unknown,
): string {
  const { schema } = servedOffline(snapshot, path, limits, overrides);
  return `${printSchema(lexicographicSortSchema(schema))}\n`;
}

/** What is served for a snapshot, to be looked at only. */
export function servedOffline(
  snapshot: string,
  path: string,
  limits: Limits,
  overrides: unknown,
): ServedSchema {
  return createServedSchema({
    snapshot: readSnapshot(snapshot, path),
    execute: () => Promise.reject(new TypeError('Nothing is asked for the sake of printing.')),
    mutations: 'off',
    connectionMax: limits.connectionMax,
    drainMaxItems: limits.drainMaxItems,
    overrides,
  });
}
