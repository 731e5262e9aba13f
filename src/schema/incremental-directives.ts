import { GraphQLStreamDirective } from '@graphql-tools/utils';
import {
  getDirectiveValues,
  parse,
  valueFromASTUntyped,
  visit,
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
} from 'graphql';
import { codedError } from '../errors.ts';

type Variables = Readonly<Record<string, unknown>>;

/** The definitions of `@defer` and `@stream`. */
export const INCREMENTAL = parse(`
"""
Lets the records of a list come in parts, for callers that accept multipart/mixed: an \`all…\` field of Query,
and edges and nodes of a connection of Query, page by page as they are read. The others get everything in one answer.
"""
directive @stream(
  """How many records the first part has, if there are so many."""
  initialCount: Int = 0
  """False: everything comes at once."""
  if: Boolean! = true
  """Comes back with each part."""
  label: String
) on FIELD

"""
Lets these fields come in a later part, for callers that accept multipart/mixed. Without effect inside of
an \`all…\` field that is not streamed. The \`pageInfo\` of a streamed connection is known at its end: put it off.
"""
directive @defer(
  """False: everything comes at once."""
  if: Boolean! = true
  """Comes back with the part."""
  label: String
) on FRAGMENT_SPREAD | INLINE_FRAGMENT
`);

/** `@defer` and `@stream` are between the caller and us. */
export function isIncremental({ name }: DirectiveNode): boolean {
  return name.value === 'defer' || name.value === 'stream';
}

/**
 * Whether something of the document is to come later.
 *
 * @throws BAD_USER_INPUT when a `@stream` begins with fewer than no records
 */
export function asksForIncremental(document: DocumentNode, variables: Variables): boolean {
  let found = false;
  visit(document, {
    Directive: (node) => {
      if (!isIncremental(node)) return false;
      const { if: condition, initialCount = 0 } = argumentsOf(node, variables);
      if (condition === false) return false;
      if (typeof initialCount !== 'number' || initialCount < 0) throw badCount(initialCount);
      found = true;
      return false;
    },
  });
  return found;
}

export interface StreamArguments {
  readonly initialCount: number;
  readonly label: string | undefined;
}

/** What `@stream` says at this field; undefined where it is not there, or switched off. */
export function streamAt(node: FieldNode, variables: Variables): StreamArguments | undefined {
  const values = getDirectiveValues(GraphQLStreamDirective, node, { ...variables });
  if (!values || values['if'] === false) return undefined;
  const { initialCount, label } = values as { initialCount: number; label?: string | null };
  return { initialCount, label: label ?? undefined };
}

function argumentsOf(node: DirectiveNode, variables: Variables): Record<string, unknown> {
  const given = (node.arguments ?? []).map(({ name, value }) => [
    name.value,
    valueFromASTUntyped(value, { ...variables }),
  ]);
  return Object.fromEntries(given) as Record<string, unknown>;
}

function badCount(count: unknown) {
  return codedError(
    'BAD_USER_INPUT',
    `initialCount of @stream says how many records come first: 0 or more, not ${String(count)}.`,
  );
}
