import {
  GraphQLError,
  Kind,
  parse,
  type DocumentNode,
  type OperationDefinitionNode,
} from 'graphql';
import { codedError } from '../errors.ts';
import { fragmentsOf, type Fragments } from '../selections.ts';

export interface Limits {
  readonly maxTokens: number;
  readonly maxDepth: number;
  readonly maxAliases: number;
}

/** Per document, all operations together: what planning costs. What validation costs is limited by graphql-js. */
const MAX_SELECTIONS = 10_000;

/** The size of a document, of whose operations the largest counts: all of them are validated. */
export interface Size {
  /** Fields, inline fragments and fragment spreads of all operations; not all of them above MAX_SELECTIONS. */
  selections: number;
  aliases: number;
  /** `__schema` and `__type` count as one level: validation limits introspection. */
  depth: number;
}

/** Measures a document. The contents of a fragment count wherever it is spread. */
export function sizeOf(document: DocumentNode): Size {
  const fragments = fragmentsOf(document);
  const size: Size = { selections: 0, aliases: 0, depth: 0 };
  for (const definition of document.definitions) {
    if (definition.kind === Kind.OPERATION_DEFINITION) measure(definition, fragments, size);
  }
  return size;
}

/** Measures an operation until it is too large. */
function measure(
  { selectionSet }: OperationDefinitionNode,
  fragments: Fragments,
  size: Size,
): void {
  let aliases = 0;
  const sets = [{ depth: 1, selections: selectionSet.selections }];
  for (let set = sets.pop(); set; set = sets.pop()) {
    const { depth } = set;
    size.depth = Math.max(size.depth, depth);
    for (const selection of set.selections) {
      size.selections += 1;
      if (size.selections > MAX_SELECTIONS) return;
      const isSpread = selection.kind === Kind.FRAGMENT_SPREAD;
      const inner = isSpread ? fragments.get(selection.name.value) : selection;
      let depthBelow = depth;
      if (selection.kind === Kind.FIELD) {
        const name = selection.name.value;
        // Routers send several `_entities` fields, and the number of representations is limited instead.
        if (selection.alias && name !== '_entities') aliases += 1;
        depthBelow = /^__(schema|type)$/.test(name) ? -Infinity : depth + 1;
      }
      if (!inner?.selectionSet) continue;
      sets.push({ depth: depthBelow, selections: inner.selectionSet.selections });
    }
  }
  size.aliases = Math.max(size.aliases, aliases);
}

/**
 * Returns the limits that a document exceeds, each as a text that says what to do.
 *
 * @param isRouter routers send one request for many callers, with aliases
 */
export function excessOf(
  { selections, aliases, depth }: Size,
  { maxDepth, maxAliases }: Limits,
  isRouter: boolean,
): readonly string[] {
  const counted = 'those of a fragment counted wherever it is spread';
  if (selections > MAX_SELECTIONS) {
    return [
      `The document has more than ${MAX_SELECTIONS} fields, ${counted}, which is the limit. Request less at a time.`,
    ];
  }
  const excess: string[] = [];
  if (depth > maxDepth) {
    excess.push(
      `The operation is ${depth} levels deep; at most ${maxDepth} are allowed (MAX_DEPTH). Request the deeper fields in another operation.`,
    );
  }
  if (aliases > maxAliases && !isRouter) {
    excess.push(
      `The operation has ${aliases} aliases, ${counted}; at most ${maxAliases} are allowed (MAX_ALIASES). Split the operation.`,
    );
  }
  return excess;
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
