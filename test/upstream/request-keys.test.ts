import { expect, test } from 'vitest';
import { keyOf } from '../../src/upstream/share.ts';

test('two long texts have two short keys, even if they have the same length', () => {
  const text = 'é'.repeat(100_000);
  const keys = [`${text}1`, `${text}2`, `1${text}`].map(keyOf);
  expect(new Set(keys).size).toBe(3);
  expect(Math.max(...keys.map(({ length }) => length))).toBeLessThan(100);
  expect(keyOf(`${text}1`)).toBe(keys[0]);
});

test('a short text is its own key', () => {
  expect(keyOf('{"query":"{ a }"}')).toBe('{"query":"{ a }"}');
});
