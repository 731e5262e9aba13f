import {
  GraphQLError,
  Kind,
  parse,
  type DocumentNode,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import { codedError } from '../errors.ts';
import { fieldsBelow, selectedFields } from '../engine/selected-fields.ts';
import { fragmentsOf, type Fragments } from '../selections.ts';

export interface Limits {
  readonly maxTokens: number;
  readonly maxDepth: number;
  readonly maxAliases: number;
}

/** A limit that a document exceeds. */
export interface Excess {
  /** Says which limit is exceeded, the actual value, and what to do. */
  readonly message: string;
  /** Whether routers may exceed it: they send one request for many callers, with aliases. */
  readonly isAllowedForRouters: boolean;
}

/** Per document, all operations together: what validation and planning cost. */
const MAX_SELECTIONS = 10_000;
/** Selections of one field at one position of the answer: validation compares every two, and everything below them. */
const MAX_REPEATS = 100;

/**
 * Finds the limits that a document exceeds; `broken` if its fragments cannot be measured.
 *
 * All operations are measured, since all of them are validated.
 */
export function excessOf(
  document: DocumentNode,
  { maxDepth, maxAliases }: Limits,
): readonly Excess[] | 'broken' {
  const fragments = fragmentsOf(document);
  const sizes = measure(document, fragments);
  if (!sizes) return 'broken';
  const counted = 'those of a fragment counted wherever it is spread';
  const excess = [...sizes.values()].flatMap(({ depth, aliases }) => [
    ...tooMuch(
      depth > maxDepth,
      `The operation is ${depth} levels deep; at most ${maxDepth} are allowed (MAX_DEPTH). Request the deeper fields in another operation.`,
    ),
    ...tooMuch(
      aliases > maxAliases,
      `The operation has ${aliases} aliases, ${counted}; at most ${maxAliases} are allowed (MAX_ALIASES). Split the operation.`,
      true,
    ),
  ]);
  const selections = [...sizes.values()].reduce((sum, size) => sum + size.selections, 0);
  if (selections > MAX_SELECTIONS) {
    const message = `The document has ${selections} fields, ${counted}; at most ${MAX_SELECTIONS} are allowed. Request less at a time.`;
    return tooMuch(true, message);
  }
  const repeated = [...sizes.keys()].flatMap((operation) => {
    const { name, times } = mostRepeatedField(operation, fragments);
    return tooMuch(
      times > MAX_REPEATS,
      `The field "${name}" is selected ${times} times at one place of the answer; at most ${MAX_REPEATS} are allowed. Select it once, with everything below it.`,
    );
  });
  return [...excess, ...repeated];
}

function tooMuch(isTooMuch: boolean, message: string, isAllowedForRouters = false): Excess[] {
  return isTooMuch ? [{ message, isAllowedForRouters }] : [];
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

/** The size of an operation. The contents of a fragment count at each spread. */
interface Size {
  /** Fields, inline fragments and fragment spreads. */
  readonly selections: number;
  readonly aliases: number;
  /** `__schema` and `__type` count as one level: validation limits introspection. */
  readonly depth: number;
}

const NOTHING: Size = { selections: 0, aliases: 0, depth: 0 };

/**
 * Measures each operation. Each fragment is measured once, however often it is spread, so ten fragments that each spread
 * the next one twice are measured quickly although they expand to a thousand times their size.
 *
 * @returns undefined if fragments contain themselves, share a name or are not spread
 */
function measure(
  { definitions }: DocumentNode,
  fragments: Fragments,
): ReadonlyMap<OperationDefinitionNode, Size> | undefined {
  const measured = new Map<string, Size>();
  const open = new Set<string>();
  let hasCircle = false;

  const ofFragment = (name: string): Size => {
    const known = measured.get(name);
    const fragment = fragments.get(name);
    if (known || !fragment) return known ?? NOTHING;
    if (open.has(name)) {
      hasCircle = true;
      return NOTHING;
    }
    open.add(name);
    const size = ofSelections(fragment.selectionSet);
    open.delete(name);
    measured.set(name, size);
    return size;
  };

  const ofSelections = ({ selections }: SelectionSetNode): Size =>
    selections.map(ofSelection).reduce(
      (sum, size) => ({
        selections: sum.selections + size.selections,
        aliases: sum.aliases + size.aliases,
        depth: Math.max(sum.depth, size.depth),
      }),
      NOTHING,
    );

  const ofSelection = (selection: SelectionNode): Size => {
    const inside =
      selection.kind === Kind.FRAGMENT_SPREAD
        ? ofFragment(selection.name.value)
        : selection.selectionSet
          ? ofSelections(selection.selectionSet)
          : NOTHING;
    const size = { ...inside, selections: inside.selections + 1 };
    if (selection.kind !== Kind.FIELD) return size;
    const name = selection.name.value;
    // Not counted: routers send several `_entities` fields, and the number of representations is limited instead.
    const isCounted = selection.alias !== undefined && name !== '_entities';
    const isIntrospection = name === '__schema' || name === '__type';
    return {
      ...size,
      aliases: inside.aliases + Number(isCounted),
      depth: isIntrospection ? 1 : inside.depth + 1,
    };
  };

  const operations = definitions.filter((each) => each.kind === Kind.OPERATION_DEFINITION);
  const sizes = new Map(
    operations.map((operation) => [operation, ofSelections(operation.selectionSet)]),
  );
  const spread = definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION).length;
  return hasCircle || measured.size < spread ? undefined : sizes;
}

/**
 * Finds the field that an operation selects most often at one position of the answer. Call it only for a measured
 * operation: its time grows with the operation's selections.
 */
function mostRepeatedField(
  { selectionSet }: OperationDefinitionNode,
  fragments: Fragments,
): { readonly name: string; readonly times: number } {
  let most = { name: '', times: 0 };
  const places = [selectedFields(selectionSet, fragments)];
  for (let place = places.pop(); place; place = places.pop()) {
    for (const field of place) {
      const { key, uses } = field;
      if (uses.length > most.times) most = { name: key, times: uses.length };
      places.push(fieldsBelow(field, fragments));
    }
  }
  return most;
}
