import { hash } from 'node:crypto';
import { getArgumentValues } from '@graphql-tools/utils';
import { Kind, print, visit, type ASTNode, type FieldNode, type GraphQLField } from 'graphql';
import type { CallVariables } from '../call.ts';
import type { FieldPlaces } from '../requests/field-places.ts';
import type { WrittenOperation } from '../requests/request-text.ts';

/** The arguments of a derived field in one call, and the names of its list, which depend on them. */
export interface ListArguments {
  readonly values: Readonly<Record<string, unknown>>;
  /** @param list the upstream's field @param walk names the list in `keys.walk`; default: `list` */
  keysOf(list: string, walk?: string): ListKeys;
}

export interface ListKeys {
  /** In cursors. */
  readonly cursors: string;
  /** For what walks share and remember. */
  readonly walk: string;
}

/** Where directives of the service may be that a list is requested with: for others, it may return another list. */
interface DirectedBy {
  readonly operation: WrittenOperation;
  readonly places: FieldPlaces;
}

/**
 * Makes a function that reads the arguments. It reads them only once if they have no variables.
 *
 * @param paging the names of those that are not filters of the upstream's list
 */
export function listArguments(
  definition: GraphQLField<unknown, unknown>,
  node: FieldNode,
  paging: readonly (string | undefined)[],
  directed: DirectedBy,
): (variables: CallVariables) => ListArguments {
  const unfiltered = new Map<string, ListKeys>();
  const directiveMarks = marksOf(directed);
  const read = (variables: CallVariables): ListArguments => {
    const values = getArgumentValues(definition, node, variables.values);
    const filters = Object.entries(values).filter(([name]) => !paging.includes(name));
    const texts = textsOf(directed.operation, variables);
    const marks = [...directiveMarks(variables), ...exactNumbers(node, paging, texts)];
    const markedFilters = marked(Object.fromEntries(filters), marks);
    const known =
      Object.keys(markedFilters).length === 0 ? unfiltered : new Map<string, ListKeys>();
    return {
      values,
      keysOf: (list, walk = list) => {
        const keys = known.get(walk) ?? {
          cursors: cursorKey(list, markedFilters),
          walk: walkKey(walk, markedFilters),
        };
        if (known.size < MAX_KNOWN) known.set(walk, keys);
        return keys;
      },
    };
  };
  return onceUnless(mentionVariables([...(node.arguments ?? []), ...directivesIn(directed)]), read);
}

/** Makes a function that names a list as `ListKeys.walk` does, with these filters in all calls. */
export function walkKeys(
  list: string,
  filters: Filters,
  directed: DirectedBy,
): (variables: CallVariables) => string {
  const directiveMarks = marksOf(directed);
  const key = (variables: CallVariables) =>
    walkKey(list, marked(filters, directiveMarks(variables)));
  return onceUnless(mentionVariables(directivesIn(directed)), key);
}

/** A nested list has a name for each parent, so only a few names are kept. */
const MAX_KNOWN = 4;

function onceUnless<T>(
  depends: boolean,
  make: (variables: CallVariables) => T,
): (variables: CallVariables) => T {
  if (depends) return make;
  let once: T | undefined;
  return (variables) => (once ??= make(variables));
}

function directivesIn({ operation, places }: DirectedBy): readonly ASTNode[] {
  return [...(operation.directives ?? []), ...places.outline];
}

function mentionVariables(nodes: readonly ASTNode[]): boolean {
  let mentions = false;
  for (const node of nodes) visit(node, { Variable: () => void (mentions = true) });
  return mentions;
}

/** Returns the value of a variable as it was written; undefined for one without a value. */
type VariableTexts = (name: string) => string | undefined;

function textsOf(
  { variableDefinitions }: WrittenOperation,
  variables: CallVariables,
): VariableTexts {
  return (name) => {
    const text = variables.text(name);
    if (text !== undefined) return text;
    const { defaultValue } =
      variableDefinitions.find(({ variable }) => variable.name.value === name) ?? {};
    return defaultValue && print(defaultValue);
  };
}

/** Makes a function that prints the directives, with the values of their variables. */
function marksOf(directed: DirectedBy): (variables: CallVariables) => readonly string[] {
  const nodes = directivesIn(directed);
  const marks = (variables: CallVariables) => {
    const texts = textsOf(directed.operation, variables);
    return nodes.map((node) => print(withValues(node, texts)));
  };
  return onceUnless(mentionVariables(nodes), marks);
}

function withValues(node: ASTNode, texts: VariableTexts): ASTNode {
  return visit(node, {
    Variable: ({ name }) => {
      const value = texts(name.value);
      // The value of an enum is printed as it is, and so is the text.
      return value === undefined ? undefined : { kind: Kind.ENUM, value };
    },
  });
}

/** Finds numbers that JavaScript cannot represent: two different filters could otherwise get one name. */
function exactNumbers(
  { arguments: args = [] }: FieldNode,
  paging: readonly (string | undefined)[],
  texts: VariableTexts,
): string[] {
  const numbers: string[] = [];
  for (const arg of args) {
    if (paging.includes(arg.name.value)) continue;
    visit(arg, {
      enter: (node) => {
        if (node.kind === Kind.INT || node.kind === Kind.FLOAT) numbers.push(node.value);
        if (node.kind === Kind.VARIABLE) numbers.push(...numbersIn(texts(node.name.value)));
      },
    });
  }
  return numbers.filter(isLost);
}

/** Whether a double may hold another value than the one that is written: 15 digits are always kept. */
function isLost(number: string): boolean {
  const [mantissa = ''] = number.split(/e/i);
  const digits = mantissa.replaceAll(/\D/g, '').replace(/^0+/, '');
  const size = Math.abs(Number(number));
  return (
    digits.length > 15 || (digits !== '' && !(size > Number.MIN_VALUE * 2 ** 52 && size < Infinity))
  );
}

function numbersIn(json = ''): readonly string[] {
  // Without escapes, a string ends at the next quote.
  const tokens = json.replaceAll(/\\./g, '').match(/"[^"]*"|-?\d[\d.eE+-]*/g) ?? [];
  return tokens.filter((text) => !text.startsWith('"'));
}

type Filters = Readonly<Record<string, unknown>>;

/** Adds what distinguishes lists beside their filters. No filter has an empty name. */
function marked(filters: Filters, marks: readonly string[]): Filters {
  return marks.length > 0 ? { ...filters, '': marks } : filters;
}

/**
 * Names a list in its cursors: the upstream's field and the given filters, hashed to 8 characters. A null filter counts
 * as absent, since a Relay client sends an unused variable as null.
 */
function cursorKey(field: string, filters: Filters): string {
  const name = `${field}${JSON.stringify(sorted(filters, isNotNull))}`;
  return hash('sha256', name, 'base64url').slice(0, 8);
}

/**
 * Names a list for what walks share and remember. Here null and absent filters make two lists, since the upstream may
 * treat them differently. Hashed, since filters may be of any length.
 */
function walkKey(field: string, filters: Filters): string {
  return hash('sha256', `${field}${JSON.stringify(sorted(filters, isThere))}`);
}

function sorted(value: unknown, isGiven: (value: unknown) => boolean): unknown {
  if (Array.isArray(value)) return value.map((item) => sorted(item, isGiven));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value as Filters)
    .filter(([, inner]) => isGiven(inner))
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner, isGiven)]));
}

function isNotNull(value: unknown): boolean {
  return value !== null && value !== undefined;
}

function isThere(value: unknown): boolean {
  return value !== undefined;
}
