import { memoize1 } from '@graphql-tools/utils';
import { print } from 'graphql';

/** The text of a document, made once: it is the key of a request, its body, and the same for all pages of a walk. */
export const printDocument = memoize1(print);
