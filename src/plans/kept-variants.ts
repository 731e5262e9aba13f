import { LRUCache } from 'lru-cache';
import type { Variant } from './operation-answer.ts';

/**
 * The plans of all operations that were made and may be wanted again: of each operation one for what its conditions
 * and the sizes of its inlined pages come to. They are bounded together: one text of 10 KB whose fragment is spread
 * thirty times takes 7 MB, and callers choose how many of its variants they ask for.
 */
export interface KeptVariants {
  ofOperation(): VariantsOfOperation;
}

export interface VariantsOfOperation {
  get(name: string): Variant | undefined;
  set(name: string, variant: Variant): void;
}

/** Characters of the requests of all plans together. A plan takes some 25 bytes of memory for each. */
const MAX_CHARACTERS = 3_000_000;
/** What even the smallest plan takes, in characters. */
const LEAST = 1_000;

export function createKeptVariants(): KeptVariants {
  const variants = new LRUCache<string, Variant>({
    maxSize: MAX_CHARACTERS,
    sizeCalculation: ({ size }, name) => LEAST + size + name.length,
  });
  let operations = 0;
  return {
    ofOperation: () => {
      operations += 1;
      const operation = `${operations} `;
      return {
        get: (name) => variants.get(operation + name),
        set: (name, variant) => void variants.set(operation + name, variant),
      };
    },
  };
}
