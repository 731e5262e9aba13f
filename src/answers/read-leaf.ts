import type { Json } from '../json.ts';
import type { LeafShape } from './shape.ts';

/** Returns a leaf as it was written if its type allows it. A number for an ID becomes the string of its digits. */
export function leafText(shape: LeafShape, value: Json): string | undefined {
  const { kind } = value;
  switch (shape.kind) {
    case 'any':
      return value.raw;
    case 'string':
      return kind === 'string' ? value.raw : undefined;
    case 'id':
      if (kind === 'string') return value.raw;
      return kind === 'number' && isWhole(value.raw) ? `"${value.raw}"` : undefined;
    case 'boolean':
      return kind === 'boolean' ? value.raw : undefined;
    case 'float':
      return kind === 'number' ? value.raw : undefined;
    case 'int': {
      const number = Number(value.raw);
      return kind === 'number' && (number | 0) === number ? value.raw : undefined;
    }
    case 'enum':
      return shape.values!.has(value.string ?? '') ? value.raw : undefined;
  }
}

/** Of any number of digits. */
function isWhole(number: string): boolean {
  return DIGITS.test(number) || Number.isInteger(Number(number));
}

const DIGITS = /^-?\d+$/;
