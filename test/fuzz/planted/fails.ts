import fc from 'fast-check';
import { expect, test } from 'vitest';

test('a number cannot be divided by three', () => {
  const property = fc.property(fc.noShrink(fc.integer()), (number) => {
    expect(Math.abs(number % 3)).not.toBe(0);
  });
  fc.assert(property);
});

test('a number is itself', () => {
  const property = fc.property(fc.integer(), (number) => {
    expect(number).toBe(number);
  });
  fc.assert(property);
});
