import { GraphQLStreamDirective } from '@graphql-tools/utils';
import { getDirectiveValues, parse, type DirectiveNode, type FieldNode } from 'graphql';

/** The definition of `@stream`. */
export const INCREMENTAL = parse(`
"""
Returns the records of an \`all…\` field of Query in parts to callers that accept multipart/mixed, page by page as
they are read. Other callers get one whole answer.
"""
directive @stream(
  """Has no effect: the first part has no records."""
  initialCount: Int = 0
  """False: the field is not streamed."""
  if: Boolean! = true
  """Returned with each part."""
  label: String
) on FIELD
`);

/** Whether the directive is `@stream`, which is never sent upstream. */
export function isIncremental({ name }: DirectiveNode): boolean {
  return name.value === 'stream';
}

/**
 * The label of the field's `@stream`; undefined without a `@stream`, or if its `if` is false.
 *
 * @throws GraphQLError
 */
export function streamAt(
  field: FieldNode,
  variables: Readonly<Record<string, unknown>>,
): { readonly label: string | undefined } | undefined {
  const values = getDirectiveValues(GraphQLStreamDirective, field, { ...variables });
  if (!values || values['if'] === false) return undefined;
  return { label: (values['label'] as string | null | undefined) ?? undefined };
}
