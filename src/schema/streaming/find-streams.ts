import { getVariableValues } from '@graphql-tools/delegate';
import { collectFields } from '@graphql-tools/utils';
import {
  getOperationAST,
  Kind,
  type DocumentNode,
  type ExecutionArgs,
  type FieldNode,
} from 'graphql';
import { codedError } from '../../errors.ts';
import { fieldsBelow, withDeferred } from '../asking/response-places.ts';
import { streamAt, type StreamArguments } from '../incremental-directives.ts';
import { pathOf, type StreamAt } from './streamed-lists.ts';

type Variables = Readonly<Record<string, unknown>>;

/** A list of the answer that is to be streamed. */
export interface StreamedField extends StreamAt {
  readonly label: string | undefined;
  /** Where the operation asks for it. */
  readonly nodes: readonly FieldNode[];
  /** Asks for nothing but this list. */
  readonly document: DocumentNode;
}

export interface StreamableFields {
  /** The `all…` fields. */
  readonly drains: ReadonlySet<string>;
  /** The connection fields, with their types. */
  readonly connections: ReadonlyMap<string, string>;
}

/**
 * The streamed `all…` fields of the root, and the streamed `edges` and `nodes` of its connections, in the
 * order of the answer; also those inside fragments.
 *
 * @param streamable fields of the root
 * @throws BAD_USER_INPUT when a list is asked for twice, and streamed in two ways
 */
export function findStreams(
  { schema, document, operationName }: ExecutionArgs,
  variables: Variables,
  { drains, connections }: StreamableFields,
): readonly StreamedField[] {
  const root = schema.getQueryType();
  const operation = getOperationAST(document, operationName);
  if (!root || !operation) return [];
  const fragments = document.definitions.filter((one) => one.kind === Kind.FRAGMENT_DEFINITION);
  const selected = {
    schema,
    fragments: Object.fromEntries(fragments.map((each) => [each.name.value, each])),
    variables,
  };
  const values = getVariableValues(variables);
  const { selectionSet } = operation;
  const fields = withDeferred(
    collectFields(schema, selected.fragments, values, root, selectionSet),
  );
  return [...fields].flatMap(([key, nodes]) => {
    const name = nodes[0]!.name.value;
    const found = (
      list: string | undefined,
      at: readonly FieldNode[],
      only: readonly FieldNode[],
    ) => {
      const stream = agreed({ key, list }, at, variables);
      const alone = { ...operation, selectionSet: { ...selectionSet, selections: only } };
      const asking: DocumentNode = { kind: Kind.DOCUMENT, definitions: [alone, ...fragments] };
      return stream ? [{ ...stream, key, list, nodes: at, document: asking }] : [];
    };
    if (drains.has(name)) return found(undefined, nodes, nodes);
    const connection = connections.get(name);
    if (connection === undefined) return [];
    return [...fieldsBelow(connection, selected, nodes)].flatMap(([list, at]) =>
      ['edges', 'nodes'].includes(at[0]!.name.value)
        ? found(list, at, [selecting(nodes[0]!, at)])
        : [],
    );
  });
}

function selecting(field: FieldNode, selections: readonly FieldNode[]): FieldNode {
  return { ...field, selectionSet: { kind: Kind.SELECTION_SET, selections } };
}

function agreed(
  place: Pick<StreamAt, 'key' | 'list'>,
  nodes: readonly FieldNode[],
  variables: Variables,
): StreamArguments | undefined {
  const [stream, ...others] = nodes.map((node) => streamAt(node, variables));
  const isSame = (other: StreamArguments | undefined) =>
    other?.initialCount === stream?.initialCount && other?.label === stream?.label;
  if (others.every(isSame)) return stream;
  throw codedError(
    'BAD_USER_INPUT',
    `The operation asks for ${pathOf(place).join('.')} at several places: stream it at each of them, with the same initialCount and no label, or give it another alias.`,
  );
}
