import { GraphQLError } from 'graphql';
import type { PersonList } from './person-list.ts';

/**
 * What a cursor remembers of the last element of its page, and so what becomes of it later:
 * - `keyset`: its sort key. The next page starts after that key, also when the element is gone.
 * - `record`: which record it is. The next page follows the record to where it is now; when
 *   the record is gone, the cursor is refused.
 * - `position`: its offset. The next page starts one further, whatever has moved meanwhile.
 */
export type CursorBehaviour = 'keyset' | 'record' | 'position';

export interface Cursors {
  /** The cursor of the element at a position of the list. */
  pointAt: (position: number) => string;
  /** The position at which the page after a cursor starts. */
  startAfter: (cursor: string) => number;
}

export function cursorsThat(behaviour: CursorBehaviour, list: PersonList): Cursors {
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
  /** What `remember` returns looks like. */
  pattern: RegExp;
  remember: (list: PersonList, position: number) => string;
  resume: (list: PersonList, memory: string) => number;
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
  // Buffer skips what is not base64url, so only a cursor that seals back to itself is whole.
  return kind === behaviour && seal(behaviour, memory) === cursor ? memory : undefined;
}
