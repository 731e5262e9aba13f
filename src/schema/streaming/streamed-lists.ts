import type { DrainedPage } from '../../paging/drain.ts';
import type { ConnectionSource, EdgeSource } from '../connection-source.ts';
import type { UpstreamRecord } from '../asking/read-page.ts';
import { createListStream, type ListStream, type StreamTurns } from './list-stream.ts';

/** What of an operation is streamed, for the resolvers; the names are those of the answer. */
export interface StreamedLists {
  /** The `all…` fields of the root. */
  readonly drains: ReadonlyMap<string, ListStream<DrainedRecord>>;
  /** The connections of the root that have something streamed. */
  readonly connections: ReadonlyMap<string, StreamedConnection>;
}

export type DrainedRecord = DrainedPage<UpstreamRecord>['records'][number];

export interface StreamedConnection {
  /** Opened once, and then read by every part. */
  source?: Promise<ConnectionSource | null>;
  /** Its `edges` and `nodes`. */
  readonly lists: ReadonlyMap<string, ListStream<EdgeSource>>;
}

/** Where a streamed list is in the answer, and how it begins. */
export interface StreamAt {
  /** The name of the field of the root. */
  readonly key: string;
  /** The name of `edges` or `nodes` in it; undefined for an `all…` field. */
  readonly list: string | undefined;
  readonly initialCount: number;
}

export function pathOf({ key, list }: Pick<StreamAt, 'key' | 'list'>): readonly string[] {
  return list === undefined ? [key] : [key, list];
}

export function openStreams<F extends StreamAt>(fields: readonly F[]) {
  const drains = new Map<string, ListStream<DrainedRecord>>();
  const connections = new Map<string, Omit<StreamedConnection, 'lists'> & { lists: EdgeStreams }>();
  const begun = fields.map((field): { field: F; stream: StreamTurns } => {
    const { key, list } = field;
    if (list === undefined) {
      const stream = createListStream<DrainedRecord>(field.initialCount);
      drains.set(key, stream);
      return { field, stream };
    }
    const stream = createListStream<EdgeSource>(field.initialCount);
    const connection = connections.get(key) ?? { lists: new Map() };
    connection.lists.set(list, stream);
    connections.set(key, connection);
    return { field, stream };
  });
  const lists: StreamedLists = { drains, connections };

  return {
    lists,
    begun,
    end: async (): Promise<void> => {
      await Promise.all(begun.map(({ stream }) => stream.end()));
      for (const { source } of connections.values()) {
        await source?.then(
          (connection) => connection?.close(),
          () => {},
        );
      }
    },
  };
}

type EdgeStreams = Map<string, ListStream<EdgeSource>>;
