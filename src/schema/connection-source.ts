import { interrupted } from '../paging/drain.ts';
import type { Slice, SliceEnd } from '../paging/connection/connection-slice.ts';
import type { Position } from '../paging/place/cursor.ts';
import type { PageInfo } from './generated/served.ts';
import type { UpstreamRecord } from './asking/read-page.ts';
import type { RecordPlace } from './asking/response-places.ts';
import type { StreamPart } from './streaming/list-stream.ts';

/** What a connection field resolves to; the resolvers below it read it. It is read once, for all of them. */
export interface ConnectionSource {
  edges(): Promise<readonly EdgeSource[]>;
  pageInfo(): Promise<PageInfo>;
  /**
   * The edges as their pages come; for each reader all of them.
   *
   * @throws DRAIN_INTERRUPTED after the first part, with `drained` and `resumeAfter`
   */
  parts(): AsyncGenerator<StreamPart<EdgeSource>, void, undefined>;
  /** What came with the pages and belongs to no record; each is given once. */
  takeBeside(): readonly unknown[];
  /** Counts the records of the whole list. */
  total(): Promise<number>;
  /** Reads the first part. */
  begin(): Promise<void>;
  /** Reads to the end. */
  finish(): Promise<SliceEnd>;
  /** Ends the reading. */
  close(): Promise<void>;
}

export interface EdgeSource {
  readonly cursor: string;
  readonly record: UpstreamRecord;
  readonly places: readonly RecordPlace[];
}

interface ConnectionSourceParts {
  slice: Slice<UpstreamRecord>;
  places: readonly RecordPlace[];
  cursorOf: (position: Position) => string;
  total: () => Promise<number>;
}

export function createConnectionSource({
  slice,
  places,
  cursorOf,
  total,
}: ConnectionSourceParts): ConnectionSource {
  const read: (readonly EdgeSource[])[] = [];
  const beside: unknown[] = [];
  let end: SliceEnd | undefined;
  /** Stays when it fails. */
  let reading: Promise<void> | undefined;

  return {
    parts,
    total,
    takeBeside: () => beside.splice(0),
    begin: async () => {
      if (!end && read.length === 0) await readOn();
    },
    finish,
    edges: async () => {
      await finish();
      return read.flat();
    },
    pageInfo: async () => {
      const around = await finish();
      return {
        ...around,
        startCursor: read.find(hasEdges)?.[0]?.cursor ?? null,
        endCursor: read.findLast(hasEdges)?.at(-1)?.cursor ?? null,
      };
    },
    close: async () => {
      await slice.return(NOWHERE);
    },
  };

  async function finish() {
    for (;;) {
      if (end) return end;
      await readOn();
    }
  }

  function readOn(): Promise<void> {
    reading ??= readNext();
    return reading;
  }

  async function readNext(): Promise<void> {
    const { done, value } = await slice.next();
    reading = undefined;
    if (done) {
      end = value;
      return;
    }
    beside.push(...value.beside);
    read.push(
      value.edges.map(({ record, position }) => ({ record, places, cursor: cursorOf(position) })),
    );
  }

  async function* parts(): ReturnType<ConnectionSource['parts']> {
    let drained = 0;
    for (let part = 0; ; part += 1) {
      try {
        if (part >= read.length && !end) await readOn();
      } catch (error) {
        const last = read.findLast(hasEdges)?.at(-1);
        throw last ? interrupted(error, { drained, resumeAfter: last.cursor }) : error;
      }
      const edges = read[part];
      if (!edges) return;
      drained += edges.length;
      yield { records: edges, beside: [] };
    }
  }
}

const NOWHERE = { hasNextPage: false, hasPreviousPage: false };

function hasEdges(edges: readonly EdgeSource[]): boolean {
  return edges.length > 0;
}
