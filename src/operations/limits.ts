import {
  GraphQLError,
  parse,
  TokenKind,
  type DocumentNode,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import { codedError } from '../errors.ts';
import { fieldsByKey, fragmentsOf, selectionsOf, type Fragments } from '../selections.ts';

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

/** Per operation. The other limits are settings. */
const MAX_ROOT_FIELDS = 50;
const MAX_DIRECTIVES = 100;
/** Per document, all operations together. */
const MAX_SELECTIONS = 10_000;
/** Selections of one field at one position of the answer. */
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
  const excess = sizes.flatMap((size) => excessOfSize(size, limits));
  if (selections > MAX_SELECTIONS) {
    return [
      ...excess,
      tooMuch(
        `The document has ${inWords(selections)} fields, those of a fragment counted wherever it is spread; at most ${MAX_SELECTIONS} are allowed. Request less at a time.`,
      ),
    ];
  }
  for (const operation of operations.keys()) {
    const { name, times } = mostRepeatedField(operation, fragments);
    if (times <= MAX_REPEATS) continue;
    excess.push(
      tooMuch(
        `The field "${name}" is selected ${times} times at one place of the answer; at most ${MAX_REPEATS} are allowed. Select it once, with everything below it.`,
      ),
    );
  }
  return excess;
}

function excessOfSize(size: OperationSize, { maxDepth, maxAliases }: Limits): Excess[] {
  const counted = 'those of a fragment counted wherever it is spread';
  const excess: Excess[] = [];
  if (size.depth > maxDepth) {
    excess.push(
      tooMuch(
        `The operation is ${inWords(size.depth)} levels deep; at most ${maxDepth} are allowed (MAX_DEPTH). Request the deeper fields in another operation.`,
      ),
    );
  }
  if (size.introspectionDepth > MAX_INTROSPECTION_DEPTH) {
    excess.push(
      tooMuch(
        `The introspection is ${inWords(size.introspectionDepth)} levels deep; at most ${MAX_INTROSPECTION_DEPTH} are allowed. Send the query of getIntrospectionQuery() in graphql-js.`,
      ),
    );
  }
  if (size.aliases > maxAliases) {
    excess.push(
      tooMuch(
        `The operation has ${inWords(size.aliases)} aliases, ${counted}; at most ${maxAliases} are allowed (MAX_ALIASES). Split the operation.`,
        true,
      ),
    );
  }
  if (size.rootFields > MAX_ROOT_FIELDS) {
    excess.push(
      tooMuch(
        `The operation has ${inWords(size.rootFields)} fields at its root; at most ${MAX_ROOT_FIELDS} are allowed. Split the operation.`,
        true,
      ),
    );
  }
  if (size.directives > MAX_DIRECTIVES) {
    excess.push(
      tooMuch(
        `The operation has ${inWords(size.directives)} directives, ${counted}; at most ${MAX_DIRECTIVES} are allowed. Split the operation.`,
      ),
    );
  }
  return excess;
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

/** Fragments that spread each other twice can reach numbers too large to print. */
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

/** The size of an operation. The contents of a fragment count at each spread. */
interface OperationSize {
  /** Fields, inline fragments and fragment spreads. */
  readonly selections: number;
  readonly rootFields: number;
  readonly aliases: number;
  readonly directives: number;
  readonly depth: number;
  /** The depth of `__schema` and `__type`, which does not count in `depth`. */
  readonly introspectionDepth: number;
}

interface DocumentSize {
  readonly operations: ReadonlyMap<OperationDefinitionNode, OperationSize>;
  readonly fragments: Fragments;
  /** Whether fragments contain themselves, share a name or are not spread. Such fragments were not measured. */
  readonly hasBrokenFragments: boolean;
}

/**
 * Measures a document. Each fragment is measured once, however often it is spread, so ten fragments that each spread
 * the next one twice are measured quickly although they expand to a thousand times their size.
 */
export function measureDocument(document: DocumentNode): DocumentSize {
  const { definitions } = document;
  const fragments = fragmentsOf(document);
  const measured = new Map<string, Size>();
  const open = new Set<string>();
  let hasCircle = false;

  const ofFragment = (name: string): Size => {
    const known = measured.get(name);
    if (known) return known;
    const fragment = fragments.get(name);
    if (!fragment) return NOTHING;
    if (open.has(name)) {
      hasCircle = true;
      return NOTHING;
    }
    open.add(name);
    const inside = ofSelections(fragment.selectionSet);
    const size = plus(inside, { directives: fragment.directives?.length ?? 0 });
    open.delete(name);
    measured.set(name, size);
    return size;
  };

  const ofSelections = ({ selections }: SelectionSetNode): Size => {
    const total = { ...NOTHING };
    for (const selection of selections) add(total, ofSelection(selection));
    return total;
  };

  const ofSelection = (selection: SelectionNode): Size => {
    const itself = { selections: 1, directives: selection.directives?.length ?? 0 };
    if (selection.kind === Kind.FRAGMENT_SPREAD)
      return plus(ofFragment(selection.name.value), itself);
    const inside = selection.selectionSet ? ofSelections(selection.selectionSet) : NOTHING;
    if (selection.kind === Kind.INLINE_FRAGMENT) return plus(inside, itself);
    // Not counted: routers send several `_entities` fields, and the number of representations is limited instead.
    const counts = selection.name.value === '_entities' ? 0 : 1;
    const isIntrospection = ['__schema', '__type'].includes(selection.name.value);
    return {
      ...plus(inside, { ...itself, aliases: selection.alias ? counts : 0 }),
      rootFields: counts,
      depth: isIntrospection ? 1 : inside.depth + 1,
      introspectionDepth: isIntrospection ? inside.depth + 1 : inside.introspectionDepth,
    };
  };

  const written = definitions.filter((each) => each.kind === Kind.OPERATION_DEFINITION);
  const operations = new Map(
    written.map((operation) => [
      operation,
      plus(ofSelections(operation.selectionSet), { directives: directivesOf(operation) }),
    ]),
  );
  const fragmentCount = definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION).length;
  return {
    operations,
    fragments,
    hasBrokenFragments:
      hasCircle || fragmentCount > fragments.size || measured.size < fragments.size,
  };
}

type Size = { -readonly [part in keyof OperationSize]: number };

const NOTHING: Readonly<Size> = {
  selections: 0,
  rootFields: 0,
  aliases: 0,
  directives: 0,
  depth: 0,
  introspectionDepth: 0,
};

function directivesOf({ directives = [], variableDefinitions = [] }: OperationDefinitionNode) {
  return variableDefinitions.reduce(
    (count, variable) => count + (variable.directives?.length ?? 0),
    directives.length,
  );
}

function plus(size: Size, more: Partial<Size>): Size {
  const total = { ...size };
  add(total, { ...NOTHING, ...more });
  return total;
}

/** Adds selections of the same level: counts are added, and the greater depth is kept. */
function add(total: Size, more: Size): void {
  total.selections += more.selections;
  total.rootFields += more.rootFields;
  total.aliases += more.aliases;
  total.directives += more.directives;
  total.depth = Math.max(total.depth, more.depth);
  total.introspectionDepth = Math.max(total.introspectionDepth, more.introspectionDepth);
}

interface RepeatedField {
  /** Its key in the answer. */
  readonly name: string;
  readonly times: number;
}

/**
 * Finds the field that an operation selects most often at one position of the answer. Validation compares all these
 * selections with each other, and everything below them.
 *
 * Call it only for a measured operation: its time grows with the operation's selections.
 */
function mostRepeatedField(
  { selectionSet }: OperationDefinitionNode,
  fragments: Fragments,
): RepeatedField {
  let most: RepeatedField = { name: '', times: 0 };
  const places = [selectionSet.selections];
  for (let place = places.pop(); place; place = places.pop()) {
    for (const [name, nodes] of fieldsByKey(place, fragments)) {
      if (nodes.length > most.times) most = { name, times: nodes.length };
      const below = selectionsOf(nodes);
      if (below.length > 0) places.push(below);
    }
  }
  return most;
}
