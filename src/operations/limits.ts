import {
  GraphQLError,
  Kind,
  parse,
  type DocumentNode,
  type FieldNode,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import { keyOf } from '../engine/syntax.ts';
import { codedError } from '../errors.ts';
import { fragmentsOf, type Fragments } from '../schema/selections.ts';

export interface Limits {
  readonly maxTokens: number;
  readonly maxDepth: number;
  readonly maxAliases: number;
}

/** Per document, all operations together: what validation and planning cost. */
const MAX_SELECTIONS = 10_000;
/** Selections of one field at one place of the answer: validation compares every two, and everything below them. */
const MAX_REPEATS = 100;

/** The size of a document, of whose operations the largest counts: all of them are validated. */
export interface Size {
  /** Fields, inline fragments and fragment spreads of all operations; not all of them above MAX_SELECTIONS. */
  selections: number;
  aliases: number;
  /** `__schema` and `__type` count as one level: validation limits introspection. */
  depth: number;
  /** The key that is selected most often at one place of the answer. */
  repeated: { readonly key: string; readonly times: number };
}

/** Measures a document. The contents of a fragment count wherever it is spread. */
export function sizeOf(document: DocumentNode): Size {
  const fragments = fragmentsOf(document);
  const size: Size = { selections: 0, aliases: 0, depth: 0, repeated: { key: '', times: 0 } };
  for (const definition of document.definitions) {
    if (definition.kind === Kind.OPERATION_DEFINITION) measure(definition, fragments, size);
  }
  return size;
}

/** Measures an operation place by place of the answer, until it is too large. */
function measure(
  { selectionSet }: OperationDefinitionNode,
  fragments: Fragments,
  size: Size,
): void {
  let aliases = 0;
  const places: Place[] = [{ depth: 1, sets: [selectionSet] }];
  for (let place = places.pop(); place; place = places.pop()) {
    const { depth, sets } = place;
    const fields: FieldNode[] = [];
    for (let set = sets.pop(); set; set = sets.pop()) {
      for (const selection of set.selections) {
        size.selections += 1;
        if (size.selections > MAX_SELECTIONS) return;
        const isSpread = selection.kind === Kind.FRAGMENT_SPREAD;
        const inner = isSpread ? fragments.get(selection.name.value) : selection;
        if (selection.kind === Kind.FIELD) fields.push(selection);
        else if (inner?.selectionSet) sets.push(inner.selectionSet);
      }
    }
    size.depth = Math.max(size.depth, depth);
    // Routers send several `_entities` fields, and the number of representations is limited instead.
    aliases += fields.filter(({ alias, name }) => alias && name.value !== '_entities').length;
    for (const [key, uses] of Map.groupBy(fields, keyOf)) {
      if (uses.length > size.repeated.times) size.repeated = { key, times: uses.length };
      const below = uses.flatMap((use) => use.selectionSet ?? []);
      const isIntrospection = /^__(schema|type)$/.test(uses[0]!.name.value);
      if (below.length > 0) {
        places.push({ depth: isIntrospection ? -Infinity : depth + 1, sets: below });
      }
    }
  }
  size.aliases = Math.max(size.aliases, aliases);
}

/** Selections of one object of the answer. */
interface Place {
  readonly depth: number;
  readonly sets: SelectionSetNode[];
}

/**
 * Returns the limits that a document exceeds, each as a text that says what to do.
 *
 * @param isRouter routers send one request for many callers, with aliases
 */
export function excessOf(
  { selections, aliases, depth, repeated: { key, times } }: Size,
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
  if (times > MAX_REPEATS) {
    excess.push(
      `The field "${key}" is selected ${times} times at one place of the answer; at most ${MAX_REPEATS} are allowed. Select it once, with everything below it.`,
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
      // Thousands of brackets in each other fill the stack of the parser.
      if (error instanceof RangeError)
        throw tooComplex(
          'The document is nested too deeply. Send values as variables, or split the document.',
        );
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
