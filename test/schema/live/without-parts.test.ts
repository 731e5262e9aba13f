import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { keyOf, partsOf, type Part, withoutParts } from '../../../src/schema/live/closed.ts';
import { readSnapshot } from '../../../src/schema/snapshot.ts';

const SDL = `
  schema { query: Root mutation: Changes }
  directive @by(order: Order) on FIELD
  type Root { people(filter: Filter, order: Order): [Person!]! named(of: Int): Named thing: Thing old: Int }
  type Changes { hire(filter: Filter): Person drop: Thing }
  interface Named { name(form: Form): String }
  interface Human implements Named { name(form: Form): String id: ID! }
  type Person implements Human & Named { name(form: Form): String id: ID! thing: Thing }
  type Team implements Named { name(form: Form): String }
  union Thing = Only
  type Only { one: Int }
  input Filter { name: String inner: Inner }
  input Inner { order: Order }
  enum Order { NAME }
  enum Form { SHORT LONG }
`;

test('parts that depend on removed parts are removed with them', () => {
  const only = without({ kind: 'field', holder: 'Only', name: 'one' });
  expect(only.types).not.toContain('Thing');
  expect(Object.keys(only.schema.getMutationType()!.getFields())).toEqual(['hire']);

  const order = without({ kind: 'value', holder: 'Order', name: 'NAME' });
  expect(order.types).not.toContain('Inner');
  expect(order.schema.getDirective('by')!.args).toEqual([]);
  const { people } = order.schema.getQueryType()!.getFields();
  expect(people!.args.map(({ name }) => name)).toEqual(['filter']);

  const { schema } = without({ kind: 'member', holder: 'Named', name: 'Person' });
  const person = schema.getType('Person') as { getInterfaces?: () => unknown[] };
  expect(person.getInterfaces!()).toEqual([]);
});

test.each(['schema/upstream.graphql', 'schema/results.graphql'])(
  '%s is valid without each of its parts, and without all fields of each type',
  (path) => {
    const snapshot = readSnapshot(readFileSync(path, 'utf8'), path);
    const { selectable, inputParts } = partsOf(snapshot, new Set());
    const parts = [...selectable, ...inputParts];
    const groups = [
      ...parts.map((part) => [part]),
      ...Map.groupBy(parts, ({ holder }) => holder).values(),
    ];
    for (const group of groups) {
      const gone = new Set(group.map(keyOf));
      const left = partsOf(readSnapshot(withoutParts(snapshot, gone), path), new Set());
      const remaining = [...left.selectable, ...left.inputParts]
        .map(keyOf)
        .filter((key) => gone.has(key));
      expect(remaining).toEqual([]);
    }
  },
);

function without(...parts: Part[]) {
  const gone = new Set(parts.map(keyOf));
  const schema = readSnapshot(withoutParts(readSnapshot(SDL, 'it'), gone), 'it');
  return { types: Object.keys(schema.getTypeMap()), schema };
}
