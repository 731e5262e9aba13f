import { getArgumentValues, GraphQLStreamDirective } from '@graphql-tools/utils';
import {
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
Returns the records of a list in parts to callers that accept multipart/mixed: those of an \`all…\` field of Query,
and the edges and nodes of a connection of Query, page by page as they are read. Other callers get one whole answer.
"""
directive @stream(
  """The number of records in the first part, if the list has as many."""
  initialCount: Int = 0
  """False: the field is not streamed."""
  if: Boolean! = true
  """Returned with each part."""
  label: String
) on FIELD

"""
Returns these fields in a later part to callers that accept multipart/mixed. Without effect inside an \`all…\` field
that is not streamed. The \`pageInfo\` of a streamed connection is known only at its end: defer it.
"""
directive @defer(
  """False: the fields are not deferred."""
  if: Boolean! = true
  """Returned with the part."""
  label: String
) on FRAGMENT_SPREAD | INLINE_FRAGMENT
`);

/** Whether the directive is `@defer` or `@stream`, which are never sent upstream. */
export function isIncremental({ name }: DirectiveNode): boolean {
  return name.value === 'defer' || name.value === 'stream';
}

/**
 * Whether the document defers or streams anything, with these variables.
 *
 * @throws BAD_USER_INPUT if the `initialCount` of a `@stream` is negative
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

/** The arguments of the field's `@stream`; undefined without one, or with `if: false`. */
export function streamAt(node: FieldNode, variables: Variables): StreamArguments | undefined {
  const stream = node.directives?.find(({ name }) => name.value === 'stream');
  const values = stream && getArgumentValues(GraphQLStreamDirective, stream, { ...variables });
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
    `initialCount of @stream is ${String(count)}, but a list cannot begin with so many records. Set it to 0 or more.`,
  );
}
