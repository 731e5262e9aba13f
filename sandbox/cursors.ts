import { GraphQLError } from 'graphql';
import type { Person, PersonList } from './person-list.ts';

/**
 * What a cursor remembers of the last element of its page, which decides where the next page starts when the list
 * has changed:
 * - `keyset`: its sort key. The next page starts after that key, even if the element was removed.
 * - `record`: which record it is. The next page starts after the record's current position; if the record was removed,
 *   the cursor is refused.
 * - `position`: its offset. The next page starts at the following offset, whatever has moved since then.
 */
export type CursorBehaviour = 'keyset' | 'record' | 'position';

export interface PageArguments {
  first?: number | null;
  after?: string | null;
}

interface Page {
  items: Person[];
  pageInfo: { first: number; hasNextPage: boolean; endCursor: string | null };
}

const LIMIT = 50;

export function pageOf(
  list: PersonList,
  { first, after }: PageArguments,
  behaviour: CursorBehaviour,
): Page {
  const size = Math.min(first ?? LIMIT, LIMIT);
  if (size < 1) throw new GraphQLError(`first must be from 1 to ${LIMIT}, and it is ${first}.`);
  const start = after == null ? 0 : startAfter(after, list, behaviour);
  const items = list.slice(start, start + size);
  const end = start + items.length;
  return {
    items,
    pageInfo: {
      first: size,
      hasNextPage: items.length > 0 && end < list.length,
      endCursor: items.length > 0 ? cursorAt(end - 1, list, behaviour) : null,
    },
  };
}

function cursorAt(position: number, list: PersonList, behaviour: CursorBehaviour): string {
  return seal(behaviour, behaviours[behaviour].remember(list, position));
}

/** The position at which the page after a cursor starts. */
function startAfter(cursor: string, list: PersonList, behaviour: CursorBehaviour): number {
  const { pattern, resume } = behaviours[behaviour];
  const memory = unseal(behaviour, cursor);
  if (memory === undefined || !pattern.test(memory)) {
    throw new GraphQLError('The cursor given as after is malformed.');
  }
  return resume(list, memory);
}

interface Behaviour {
  /** Matches what `remember` returns. */
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
  // Buffer ignores characters that are not base64url, so a cursor is intact only if it seals back to itself.
  return kind === behaviour && seal(behaviour, memory) === cursor ? memory : undefined;
}
