import { buildSchema } from 'graphql';
import { expect, test } from 'vitest';
import { createOperations } from '../../src/operations/operations.ts';

const schema = buildSchema('type Query { a(n: Int): String b: String }');
const rules = {
  schema,
  introspection: true,
  maxTokens: 50_000,
  maxDepth: 9,
  maxAliases: 9,
};

test('an operation is parsed, validated and compiled once, however often its text arrives', () => {
  const compiled: unknown[] = [];
  const operations = createOperations({
    ...rules,
    compile: (operation) => compiled.push([operation.name, operation.errors()]),
  });
  const text = 'query A { a } query B { b }';
  const first = operations.find(text, 'A');
  expect(compiled).toEqual([]);
  expect([first.plan, first.plan, operations.find(text, 'A').plan]).toEqual([1, 1, 1]);
  expect(operations.find(text, 'A')).toBe(first);
  expect(operations.find('{ b }', null).type).toBe('query');
  const second = operations.find(text, 'B');
  expect([second.name, second.plan, second.document]).toEqual(['B', 2, first.document]);
  expect(compiled).toEqual([
    ['A', []],
    ['B', []],
  ]);
});

test('documents are kept up to a total size, and the least recently used are dropped first', () => {
  const operations = createOperations(rules);
  const first = operations.find(textOf(1), undefined);
  operations.find(textOf(2), undefined);
  expect(operations.find(textOf(1), undefined)).toBe(first);
  for (const n of [3, 4, 5]) operations.find(textOf(n), undefined);
  expect(operations.find(textOf(1), undefined)).toBe(first);
  for (const n of [6, 7, 8, 9]) operations.find(textOf(n), undefined);
  expect(operations.find(textOf(1), undefined)).not.toBe(first);
});

function textOf(n: number): string {
  return `{ a(n: ${n}) } #${' '.repeat(100_000)}`;
}
