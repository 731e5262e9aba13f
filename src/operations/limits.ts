import { GraphQLError, parse, TokenKind, type DocumentNode } from 'graphql';
import { codedError } from '../errors.ts';
import { measureDocument, type OperationSize } from './measure-document.ts';
import { mostRepeatedField } from './repeated-field.ts';

export interface Limits {
  readonly maxTokens: number;
  readonly maxDepth: number;
  readonly maxAliases: number;
}

/** What is too much in a document. */
export interface Excess {
  /** Says the limit, what was reached, and what to do. */
  readonly message: string;
  /** Whether routers may do so: they ask for many callers at once, under aliases. */
  readonly isRoutersWay: boolean;
}

/** Of one operation. The settings have the others. */
export const MAX_ROOT_FIELDS = 50;
export const MAX_DIRECTIVES = 100;
/** Of all operations of a document together. */
export const MAX_SELECTIONS = 10_000;
/** At one place of the answer. */
export const MAX_REPEATS = 100;
/** An alias stands in the answer once for each record: a long one makes gigabytes of it. */
export const MAX_NAME = 255;
/** The question of GraphiQL and other tools is 15 levels deep. */
export const MAX_INTROSPECTION_DEPTH = 20;

/**
 * What of a document is over a limit; `broken` when its fragments are such that this cannot be told.
 *
 * All of its operations are looked at, since all are validated.
 */
export function excessOf(document: DocumentNode, limits: Limits): readonly Excess[] | 'broken' {
  const longest = longestName(document);
  if (longest > MAX_NAME) {
    return [
      tooMuch(
        `A name in the document has ${longest} characters; at most ${MAX_NAME} are taken. Choose a shorter one.`,
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
        `The document has ${spoken(selections)} fields, those of a fragment counted wherever it is spread; at most ${MAX_SELECTIONS} are taken. Ask for less at a time.`,
      ),
    ];
  }
  for (const operation of operations.keys()) {
    const { name, times } = mostRepeatedField(operation, fragments);
    if (times <= MAX_REPEATS) continue;
    found.push(
      tooMuch(
        `The field "${name}" is asked for ${times} times at one place of the answer; at most ${MAX_REPEATS} are taken. Ask for it once, with everything that you want of it.`,
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
        `The operation is ${spoken(size.depth)} levels deep; at most ${maxDepth} are taken (MAX_DEPTH). Ask for what is below in another operation.`,
      ),
    );
  }
  if (size.introspectionDepth > MAX_INTROSPECTION_DEPTH) {
    found.push(
      tooMuch(
        `The introspection is ${spoken(size.introspectionDepth)} levels deep; at most ${MAX_INTROSPECTION_DEPTH} are taken. Ask as getIntrospectionQuery() of graphql-js does.`,
      ),
    );
  }
  if (size.aliases > maxAliases) {
    found.push(
      tooMuch(
        `The operation has ${spoken(size.aliases)} aliases, ${counted}; at most ${maxAliases} are taken (MAX_ALIASES). Split it into several.`,
        true,
      ),
    );
  }
  if (size.rootFields > MAX_ROOT_FIELDS) {
    found.push(
      tooMuch(
        `The operation has ${spoken(size.rootFields)} fields at its root; at most ${MAX_ROOT_FIELDS} are taken. Split it into several.`,
        true,
      ),
    );
  }
  if (size.directives > MAX_DIRECTIVES) {
    found.push(
      tooMuch(
        `The operation has ${spoken(size.directives)} directives, ${counted}; at most ${MAX_DIRECTIVES} are taken. Split it into several.`,
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

function tooMuch(message: string, isRoutersWay = false): Excess {
  return { message, isRoutersWay };
}

/** Fragments that double each other go beyond any number worth reading. */
function spoken(count: number): string {
  return count > 1_000_000 ? 'more than 1000000' : String(count);
}

/** Parses as graphql-js does. Tokens are counted while the text is read, so nothing of a huge one is kept. */
export function parseWithin(maxTokens: number): (text: string) => DocumentNode {
  return (text) => {
    try {
      return parse(text, { maxTokens });
    } catch (error) {
      if (!(error instanceof GraphQLError && error.message.includes('tokens. Parsing aborted.'))) {
        throw error;
      }
      throw tooComplex(
        `The document has more than ${maxTokens} tokens (words, numbers, brackets), which is the most that is taken (MAX_TOKENS). Send values as variables, or split it into several.`,
      );
    }
  };
}

export function tooComplex(message: string): GraphQLError {
  return codedError('OPERATION_TOO_COMPLEX', message, {
    // As for what validation refuses: `spec` leaves 200 to callers who accept application/json.
    extensions: { http: { status: 400, spec: true } },
  });
}
