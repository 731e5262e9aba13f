import type { PagedList } from './pages.ts';
import type { PersonList } from './person-list.ts';

/** The persons as the numbers of their records. */
export function recordsOf(persons: PersonList): PagedList<number> {
  return {
    length: persons.length,
    slice: (start, end) => {
      const length = Math.max(0, Math.min(end, persons.length) - start);
      return Array.from({ length }, (_, index) => persons.recordAt(start + index));
    },
    recordAt: (position) => persons.recordAt(position),
    keyAt: (position) => persons.keyAt(position),
    positionAfterKey: (key) => persons.positionAfterKey(key),
    positionOf: (record) => persons.positionOf(record),
  };
}

/** Those of the records that are wanted, in the order of their list. */
export function recordsAmong(
  persons: PersonList,
  isWanted: (record: number) => boolean,
): PagedList<number> {
  const positions: number[] = [];
  for (let position = 0; position < persons.length; position += 1) {
    if (isWanted(persons.recordAt(position))) positions.push(position);
  }
  const indexFrom = (position: number) => {
    const found = positions.findIndex((each) => each >= position);
    return found < 0 ? positions.length : found;
  };
  return {
    length: positions.length,
    slice: (start, end) =>
      positions.slice(start, end).map((position) => persons.recordAt(position)),
    recordAt: (index) => persons.recordAt(positions[index]!),
    keyAt: (index) => persons.keyAt(positions[index]!),
    positionAfterKey: (key) => indexFrom(persons.positionAfterKey(key)),
    positionOf: (record) => {
      const position = persons.positionOf(record);
      const index = position === undefined ? -1 : positions.indexOf(position);
      return index < 0 ? undefined : index;
    },
  };
}
