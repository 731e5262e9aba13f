import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { PersonList } from '../../sandbox/person-list.ts';

test('the persons are the same in every sandbox', () => {
  expect(new PersonList(137).all()).toEqual(new PersonList(1000).slice(0, 137));
});

test('after any changes, persons are in the order of their keys, and each is found at its position', () => {
  fc.assert(
    fc.property(fc.nat(12), fc.array(change, { maxLength: 60 }), (count, changes) => {
      const list = new PersonList(count);
      const model = list.all().map(({ id }) => id);
      for (const { kind, from, to, size } of changes) apply(kind, from, to, size, list, model);

      expect(list.all().map(({ id }) => id)).toEqual(model);
      expect(new Set(model).size).toBe(model.length);
      const keys = model.map((_, position) => list.keyAt(position));
      expect(keys).toEqual([...new Set(keys)].toSorted());
      keys.forEach((key, position) => {
        expect(list.positionAfterKey(key)).toBe(position + 1);
        expect(list.positionOf(list.recordAt(position))).toBe(position);
      });
    }),
  );
});

const change = fc.record({
  kind: fc.constantFrom('insert', 'remove', 'move'),
  from: fc.nat(),
  to: fc.nat(),
  size: fc.nat(5),
});

/** Does the same to the list and to a plain array of ids. */
function apply(
  kind: 'insert' | 'remove' | 'move',
  from: number,
  to: number,
  size: number,
  list: PersonList,
  model: string[],
): void {
  if (kind === 'insert') {
    const at = from % (model.length + 1);
    list.insert(at, size);
    model.splice(at, 0, ...list.slice(at, at + size).map(({ id }) => id));
  } else if (kind === 'remove') {
    const at = from % (model.length + 1);
    const count = Math.min(size, model.length - at);
    list.remove(at, count);
    model.splice(at, count);
  } else if (model.length > 0) {
    list.move(from % model.length, to % model.length);
    model.splice(to % model.length, 0, ...model.splice(from % model.length, 1));
  }
}
