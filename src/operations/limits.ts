import { GraphQLError, parse, TokenKind, type DocumentNode } from 'graphql';
import { codedError } from '../errors.ts';
import { measureDocument, mostRepeatedField, type OperationSize } from './measure-document.ts';

export interface Limits {
  readonly maxTokens: number;
  readonly maxDepth: number;
  readonly maxAliases: number;
}

/** A limit that a document exceeds. */
export interface Excess {
  /** Names the limit and the actual value, and says what to do. */
  readonly message: string;
  /** Whether routers may exceed it: they send one request for many callers, with aliases. */
  readonly isAllowedForRouters: boolean;
}

/** Per operation. The other limits are settings. */
const MAX_ROOT_FIELDS = 50;
const MAX_DIRECTIVES = 100;
/** Per document, all operations together. */
const MAX_SELECTIONS = 10_000;
/** Selections of one field at one place of the answer. */
const MAX_REPEATS = 100;
/** Characters. The answer repeats an alias in every record, so a long one could add gigabytes. */
const MAX_NAME = 255;
/** The introspection query of GraphiQL and other tools is 15 levels deep. */
const MAX_INTROSPECTION_DEPTH = 20;

/**
 * Finds the limits that a document exceeds; `broken` if its fragments cannot be measured.
 *
 * All operations are measured, since all of them are validated.
 */
export function excessOf(document: DocumentNode, limits: Limits): readonly Excess[] | 'broken' {
  const longest = longestName(document);
  if (longest > MAX_NAME) {
    return [
      tooMuch(
        `A name in the document has ${longest} characters; at most ${MAX_NAME} are allowed. Choose a shorter one.`,
      ),
    ];
  }
  const { operations, fragments, hasBrokenFragments } = measureDocument(document);
  if (hasBrokenFragments) return 'broken';
  const sizes = [...operations.values()];
  const selections = sizes.reduce((sum, size) => sum + size.selections, 0);
  const found = sizes.flatMap((size) => excessOfSize(size, limits));
  if (selections > MAX_SELECTIONS) {
    return [
      ...found,
      tooMuch(
        `The document has ${inWords(selections)} fields, those of a fragment counted wherever it is spread; at most ${MAX_SELECTIONS} are allowed. Request less at a time.`,
      ),
    ];
  }
  for (const operation of operations.keys()) {
    const { name, times } = mostRepeatedField(operation, fragments);
    if (times <= MAX_REPEATS) continue;
    found.push(
      tooMuch(
        `The field "${name}" is selected ${times} times at one place of the answer; at most ${MAX_REPEATS} are allowed. Select it once, with everything below it.`,
      ),
    );
  }
  return found;
}

function excessOfSize(size: OperationSize, { maxDepth, maxAliases }: Limits): Excess[] {
  const counted = 'those of a fragment counted wherever it is spread';
  const found: Excess[] = [];
  if (size.depth > maxDepth) {
    found.push(
      tooMuch(
        `The operation is ${inWords(size.depth)} levels deep; at most ${maxDepth} are allowed (MAX_DEPTH). Request the deeper fields in another operation.`,
      ),
    );
  }
  if (size.introspectionDepth > MAX_INTROSPECTION_DEPTH) {
    found.push(
      tooMuch(
        `The introspection is ${inWords(size.introspectionDepth)} levels deep; at most ${MAX_INTROSPECTION_DEPTH} are allowed. Send the query of getIntrospectionQuery() in graphql-js.`,
      ),
    );
  }
  if (size.aliases > maxAliases) {
    found.push(
      tooMuch(
        `The operation has ${inWords(size.aliases)} aliases, ${counted}; at most ${maxAliases} are allowed (MAX_ALIASES). Split the operation.`,
        true,
      ),
    );
  }
  if (size.rootFields > MAX_ROOT_FIELDS) {
    found.push(
      tooMuch(
        `The operation has ${inWords(size.rootFields)} fields at its root; at most ${MAX_ROOT_FIELDS} are allowed. Split the operation.`,
        true,
      ),
    );
  }
  if (size.directives > MAX_DIRECTIVES) {
    found.push(
      tooMuch(
        `The operation has ${inWords(size.directives)} directives, ${counted}; at most ${MAX_DIRECTIVES} are allowed. Split the operation.`,
      ),
    );
  }
  return found;
}

function longestName({ loc }: DocumentNode): number {
  let longest = 0;
  for (let token = loc?.startToken; token; token = token.next ?? undefined) {
    if (token.kind === TokenKind.NAME) longest = Math.max(longest, token.end - token.start);
  }
  return longest;
}

function tooMuch(message: string, isAllowedForRouters = false): Excess {
  return { message, isAllowedForRouters };
}

/** Fragments that spread each other twice can reach numbers that are not worth printing. */
function inWords(count: number): string {
  return count > 1_000_000 ? 'more than 1000000' : String(count);
}

/** Makes a function that parses a text and stops at too many tokens, so that a huge text is never parsed whole. */
export function parseWithin(maxTokens: number): (text: string) => DocumentNode {
  return (text) => {
    try {
      return parse(text, { maxTokens });
    } catch (error) {
      if (!(error instanceof GraphQLError && error.message.includes('tokens. Parsing aborted.'))) {
        throw error;
      }
      throw tooComplex(
        `The document has more than ${maxTokens} tokens (words, numbers, brackets), which is the limit (MAX_TOKENS). Send values as variables, or split the document.`,
      );
    }
  };
}

export function tooComplex(message: string): GraphQLError {
  return codedError('OPERATION_TOO_COMPLEX', message, {
    // As for validation errors: `spec` keeps the status 200 for callers that accept application/json.
    extensions: { http: { status: 400, spec: true } },
  });
}
