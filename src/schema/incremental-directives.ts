import { getArgumentValues, GraphQLStreamDirective } from '@graphql-tools/utils';
import {
  Kind,
  parse,
  valueFromASTUntyped,
  visit,
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
} from 'graphql';
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

/**
 * Creates a function that returns whether a document streams anything with these variables. The document is read only
 * once. The function throws BAD_USER_INPUT if the `initialCount` of a `@stream` is negative.
 */
export function incrementalCheck(document: DocumentNode): (variables: Variables) => boolean {
  const directives: ReturnType<typeof argumentsOf>[] = [];
  visit(document, {
    Directive: (node) => {
      if (isIncremental(node)) directives.push(argumentsOf(node));
    },
  });
  return (variables) => {
    let isIncrementalResult = false;
    for (const { condition, initialCount } of directives) {
      if (condition(variables) === false) continue;
      const count = initialCount(variables);
      if (count !== undefined && (typeof count !== 'number' || count < 0)) throw badCount(count);
      isIncrementalResult = true;
    }
    return isIncrementalResult;
  };
}

interface StreamArguments {
  readonly initialCount: number;
  readonly label: string | undefined;
}

/** The arguments of the field's `@stream`; undefined without one, or if its `if` is false or null. */
export function streamAt(node: FieldNode, variables: Variables): StreamArguments | undefined {
  const stream = node.directives?.find(({ name }) => name.value === 'stream');
  if (stream && argumentOf(stream, 'if')(variables) === null) return undefined;
  const values = stream && getArgumentValues(GraphQLStreamDirective, stream, { ...variables });
  if (!values || values['if'] === false) return undefined;
  const { initialCount, label } = values as { initialCount: number; label?: string | null };
  return { initialCount, label: label ?? undefined };
}

function argumentsOf(directive: DirectiveNode) {
  return {
    condition: argumentOf(directive, 'if'),
    initialCount: argumentOf(directive, 'initialCount'),
  };
}

function argumentOf(directive: DirectiveNode, argument: string): (variables: Variables) => unknown {
  const value = directive.arguments?.find(({ name }) => name.value === argument)?.value;
  if (value?.kind === Kind.VARIABLE) return (variables) => variables[value.name.value];
  const constant = value && valueFromASTUntyped(value);
  return () => constant;
}

function badCount(count: unknown) {
  return codedError(
    'BAD_USER_INPUT',
    `initialCount of @stream is ${String(count)}, but a list cannot begin with so many records. Set it to 0 or more.`,
  );
}
