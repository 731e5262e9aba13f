import { getVariableValues } from '@graphql-tools/delegate';
import { collectFields } from '@graphql-tools/utils';
import {
  getOperationAST,
  Kind,
  type ExecutionArgs,
  type FieldNode,
  type FragmentDefinitionNode,
} from 'graphql';
import { codedError } from '../errors.ts';
import { streamAt, withoutIncremental, type StreamArguments } from './incremental-directives.ts';
import { withDeferred } from './response-places.ts';
import type { StreamedField } from './streamed-operation.ts';

type Variables = Readonly<Record<string, unknown>>;

/**
 * The streamed `all…` fields of the root, in the order of the answer; also those inside fragments.
 *
 * @param drained the names of all `all…` fields, with their types
 * @throws BAD_USER_INPUT when a field is asked for twice, and streamed in two ways
 */
export function findStreams(
  { schema, document, operationName }: ExecutionArgs,
  variables: Variables,
  drained: ReadonlySet<string>,
): readonly StreamedField[] {
  const root = schema.getQueryType();
  const operation = getOperationAST(document, operationName);
  if (!root || !operation) return [];
  const fragments = document.definitions.filter((one) => one.kind === Kind.FRAGMENT_DEFINITION);
  const fields = withDeferred(
    collectFields(
      schema,
      byName(fragments),
      getVariableValues(variables),
      root,
      operation.selectionSet,
    ),
  );
  return [...fields].flatMap(([key, nodes]) => {
    if (!drained.has(`${root.name}.${nodes[0]?.name.value}`)) return [];
    const stream = agreed(key, nodes, variables);
    if (!stream) return [];
    const alone = { ...operation, selectionSet: { ...operation.selectionSet, selections: nodes } };
    const only = withoutIncremental({ kind: Kind.DOCUMENT, definitions: [alone, ...fragments] });
    return [{ ...stream, key, nodes, document: only }];
  });
}

function byName(
  fragments: readonly FragmentDefinitionNode[],
): Record<string, FragmentDefinitionNode> {
  return Object.fromEntries(fragments.map((fragment) => [fragment.name.value, fragment]));
}

function agreed(
  key: string,
  nodes: readonly FieldNode[],
  variables: Variables,
): StreamArguments | undefined {
  const [stream, ...others] = nodes.map((node) => streamAt(node, variables));
  if (others.every((other) => other?.initialCount === stream?.initialCount)) return stream;
  throw codedError(
    'BAD_USER_INPUT',
    `The operation asks for ${key} at several places: stream it at each of them with the same initialCount, or give it another alias.`,
  );
}
