import fc from 'fast-check';
import { expect, test } from 'vitest';

test('a number is itself', () => {
  const property = fc.property(fc.integer(), (number) => {
    expect(number).toBe(number);
  });
  fc.assert(property);
});
