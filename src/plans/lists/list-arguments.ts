import { hash } from 'node:crypto';
import { getArgumentValues } from '@graphql-tools/utils';
import {
  Kind,
  print,
  visit,
  type ASTNode,
  type DirectiveNode,
  type FieldNode,
  type GraphQLField,
} from 'graphql';
import type { CallVariables } from '../call.ts';

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

/**
 * Makes a function that reads the arguments. It reads them only once if they have no variables.
 *
 * @param own the arguments that are not filters of the upstream's list
 * @param directives of the operation: the service may return another list for other directives
 */
export function listArguments(
  definition: GraphQLField<unknown, unknown>,
  node: FieldNode,
  own: readonly (string | undefined)[],
  directives: readonly DirectiveNode[] = [],
): (variables: CallVariables) => ListArguments {
  const mentioned = variablesIn([node.arguments ?? [], directives].flat());
  const unfiltered = new Map<string, ListKeys>();
  const read = (variables: CallVariables): ListArguments => {
    const values = getArgumentValues(definition, node, variables.values);
    const filters = Object.entries(values).filter(([name]) => !own.includes(name));
    const marks = [...directiveMarks(directives, variables), ...exactNumbers(node, own, variables)];
    const given = Object.fromEntries(marks.length > 0 ? [...filters, ['', marks]] : filters);
    const known = Object.keys(given).length === 0 ? unfiltered : new Map<string, ListKeys>();
    return {
      values,
      keysOf: (list, walk = list) => {
        const keys = known.get(walk) ?? {
          cursors: cursorKey(list, given),
          walk: walkKey(walk, given),
        };
        if (known.size < MAX_KNOWN) known.set(walk, keys);
        return keys;
      },
    };
  };
  if (mentioned.length > 0) return read;
  let once: ListArguments | undefined;
  return (variables) => (once ??= read(variables));
}

/** A nested list has a name for each parent, so only a few names are kept. */
const MAX_KNOWN = 4;

function variablesIn(nodes: readonly ASTNode[]): string[] {
  const found = new Set<string>();
  for (const node of nodes) visit(node, { Variable: ({ name }) => void found.add(name.value) });
  return [...found];
}

function directiveMarks(directives: readonly DirectiveNode[], variables: CallVariables): string[] {
  return directives.map((directive) => {
    const used = variablesIn([directive]).map((name) => [name, variables.text(name)]);
    return `${print(directive)}${used.length > 0 ? JSON.stringify(used) : ''}`;
  });
}

/** Finds numbers that JavaScript cannot represent: two different filters could otherwise get one name. */
function exactNumbers(
  { arguments: args = [] }: FieldNode,
  own: readonly (string | undefined)[],
  variables: CallVariables,
): string[] {
  const texts: string[] = [];
  for (const arg of args) {
    if (own.includes(arg.name.value)) continue;
    visit(arg, {
      enter: (node) => {
        if (node.kind === Kind.INT || node.kind === Kind.FLOAT) texts.push(node.value);
        if (node.kind === Kind.VARIABLE) texts.push(...numbersIn(variables.text(node.name.value)));
      },
    });
  }
  return texts.filter(
    (text) => Number(text) !== Number(text.slice(0, 15)) && String(Number(text)) !== text,
  );
}

function numbersIn(json = ''): readonly string[] {
  return json.match(/-?\d[\d.eE+-]{14,}/g) ?? [];
}

type Filters = Readonly<Record<string, unknown>>;

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
export function walkKey(field: string, filters: Filters): string {
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
