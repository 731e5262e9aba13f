import { getArgumentValues, GraphQLStreamDirective } from '@graphql-tools/utils';
import { parse, visit, type DirectiveNode, type DocumentNode, type FieldNode } from 'graphql';
import { codedError } from '../errors.ts';

type Variables = Readonly<Record<string, unknown>>;

/** The definition of `@stream`. */
export const INCREMENTAL = parse(`
"""
Returns the records of an \`all…\` field of Query in parts to callers that accept multipart/mixed, page by page as
they are read. Other callers get one whole answer.
"""
directive @stream(
  """The number of records in the first part, if the list has as many."""
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

/** Whether a document has a `@stream`, whatever its conditions are. */
export function hasIncremental(document: DocumentNode): boolean {
  return incrementalIn(document).length > 0;
}

/** Creates a function that throws BAD_USER_INPUT if a `@stream` of the document has a wrong value of a variable. */
export function incrementalCheck(document: DocumentNode): (variables: Variables) => void {
  const directives = incrementalIn(document);
  return (variables) => {
    for (const directive of directives) argumentsOf(directive, variables);
  };
}

function incrementalIn(document: DocumentNode): readonly DirectiveNode[] {
  const directives: DirectiveNode[] = [];
  visit(document, { Directive: (node) => void (isIncremental(node) && directives.push(node)) });
  return directives;
}

interface StreamArguments {
  readonly initialCount: number;
  readonly label: string | undefined;
}

/**
 * The arguments of the field's `@stream`; undefined without one, or if its `if` is false.
 *
 * @throws GraphQLError, BAD_USER_INPUT
 */
export function streamAt(
  { directives = [] }: FieldNode,
  variables: Variables,
): StreamArguments | undefined {
  const stream = directives.find(isIncremental);
  return stream && argumentsOf(stream, variables);
}

function argumentsOf(stream: DirectiveNode, variables: Variables): StreamArguments | undefined {
  const values = getArgumentValues(GraphQLStreamDirective, stream, { ...variables });
  const { if: condition, initialCount, label } = values;
  if (condition === false) return undefined;
  if (typeof initialCount !== 'number' || initialCount < 0) {
    throw codedError(
      'BAD_USER_INPUT',
      `initialCount of @stream is ${String(initialCount)}, but a list cannot begin with so many records. Set it to 0 or more.`,
    );
  }
  return { initialCount, label: (label as string | null | undefined) ?? undefined };
}
