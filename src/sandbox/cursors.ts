import { GraphQLError } from 'graphql';

/**
 * What a cursor remembers of the last element of its page, which decides where the next page starts when the list
 * has changed:
 * - `keyset`: its sort key. The next page starts after that key, even if the element was removed.
 * - `record`: which record it is. The next page starts after the record's current position; if the record was removed, the cursor
 *   is refused.
 * - `position`: its offset. The next page starts at the following offset, whatever has moved meanwhile.
 */
export type CursorBehaviour = 'keyset' | 'record' | 'position';

/** A list in the order of its sort keys, which has a number for each record. */
export interface CursorList {
  recordAt(position: number): number;
  keyAt(position: number): string;
  /** The position of the first record with a larger key. */
  positionAfterKey(key: string): number;
  /** The record's current position; undefined once it was removed. */
  positionOf(record: number): number | undefined;
}

export interface Cursors {
  /** The cursor of the element at a position of the list. */
  pointAt: (position: number) => string;
  /** The position at which the page after a cursor starts. */
  startAfter: (cursor: string) => number;
}

export function cursorsThat(behaviour: CursorBehaviour, list: CursorList): Cursors {
  const { remember, resume, pattern } = behaviours[behaviour];
  return {
    pointAt: (position) => seal(behaviour, remember(list, position)),
    startAfter: (cursor) => {
      const memory = unseal(behaviour, cursor);
      if (memory === undefined || !pattern.test(memory)) {
        throw new GraphQLError('The cursor given as after is malformed.');
      }
      return resume(list, memory);
    },
  };
}

interface Behaviour {
  /** Matches what `remember` returns. */
  pattern: RegExp;
  remember: (list: CursorList, position: number) => string;
  resume: (list: CursorList, memory: string) => number;
}

const behaviours: Record<CursorBehaviour, Behaviour> = {
  keyset: {
    pattern: /^[0-9a-z]+$/,
    remember: (list, position) => list.keyAt(position),
    resume: (list, key) => list.positionAfterKey(key),
  },
  record: {
    pattern: /^\d{1,15}$/,
    remember: (list, position) => String(list.recordAt(position)),
    resume: (list, record) => {
      const position = list.positionOf(Number(record));
      if (position === undefined) {
        throw new GraphQLError('The record that the cursor given as after names no longer exists.');
      }
      return position + 1;
    },
  },
  position: {
    pattern: /^\d{1,15}$/,
    remember: (_list, position) => String(position),
    resume: (_list, position) => Number(position) + 1,
  },
};

function seal(behaviour: CursorBehaviour, memory: string): string {
  return Buffer.from(`${behaviour}:${memory}`).toString('base64url');
}

function unseal(behaviour: CursorBehaviour, cursor: string): string | undefined {
  const [kind, memory = ''] = Buffer.from(cursor, 'base64url').toString('utf8').split(':');
  // Buffer ignores characters that are not base64url, so a cursor is intact only if it seals back to itself.
  return kind === behaviour && seal(behaviour, memory) === cursor ? memory : undefined;
}
