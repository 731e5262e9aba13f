import type { DocumentNode } from 'graphql';
import { LRUCache } from 'lru-cache';

/** Characters of all documents together. Parsed, they take some 150 times as much memory. */
const MAX_CHARACTERS = 500_000;

/**
 * Keeps what was parsed by its size. Yoga keeps 1,024 documents, however large: that would be room for 800 MB of
 * different ones with 2,000 tokens each. What does not parse is not kept.
 */
export function documentCache() {
  return {
    documentCache: new LRUCache<string, DocumentNode>({
      maxSize: MAX_CHARACTERS,
      sizeCalculation: (_document, text) => text.length + 1,
    }),
    errorCache: { get: () => undefined, set: () => {} },
  };
}
