import {
  getNamedType,
  isObjectType,
  isInterfaceType,
  Kind,
  valueFromAST,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';

/** An operation that can be executed: valid, with a name if there are several. */
interface CostedOperation {
  readonly document: DocumentNode;
  readonly operationName: string | null;
  readonly variables: Readonly<Record<string, unknown>> | null;
}

/**
 * A field costs 1 plus the cost of its selections. For a list, that cost is multiplied by the number of requested
 * records, even if there are fewer. `__typename` and introspection are free.
 */
export function operationCost(
  { document, operationName, variables }: CostedOperation,
  schema: GraphQLSchema,
): number {
  const operations = document.definitions.filter(
    (definition) => definition.kind === Kind.OPERATION_DEFINITION,
  );
  const operation = operations.find(
    ({ name }) => operationName === null || name?.value === operationName,
  );
  if (operation === undefined) return 0;
  const fragments = fragmentsOf(document);
  const values = { ...defaultsOf(operation), ...variables };
  return costOf(operation.selectionSet, schema.getRootType(operation.operation) ?? undefined);

  function costOf({ selections }: SelectionSetNode, type: GraphQLNamedType | undefined): number {
    let cost = 0;
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) cost += fieldCost(selection, type);
      else {
        const { typeCondition, selectionSet } =
          selection.kind === Kind.INLINE_FRAGMENT
            ? selection
            : fragments.get(selection.name.value)!;
        const name = typeCondition?.name.value;
        cost += costOf(selectionSet, name === undefined ? type : schema.getType(name));
      }
    }
    return cost;
  }

  function fieldCost(node: FieldNode, type: GraphQLNamedType | undefined): number {
    if (!isObjectType(type) && !isInterfaceType(type)) return 0;
    const field = type.getFields()[node.name.value];
    // Fields that begin with __ are in no type.
    if (field === undefined) return 0;
    if (node.selectionSet === undefined) return 1;
    return 1 + requestedRecords(node, field) * costOf(node.selectionSet, getNamedType(field.type));
  }

  function requestedRecords(node: FieldNode, field: GraphQLField<unknown, unknown>): number {
    const first = field.args.find(({ name }) => name === 'first');
    if (first === undefined) return 1;
    const argument = node.arguments?.find(({ name }) => name.value === 'first');
    const count = argument && valueFromAST(argument.value, first.type, values);
    return typeof count === 'number' ? Math.max(count, 1) : PAGE;
  }
}

/** The page size of a list without `first`. */
const PAGE = 50;

function defaultsOf({ variableDefinitions = [] }: OperationDefinitionNode): object {
  return Object.fromEntries(
    variableDefinitions.flatMap(({ variable, defaultValue }) =>
      defaultValue?.kind === Kind.INT ? [[variable.name.value, Number(defaultValue.value)]] : [],
    ),
  );
}

/** The fragments of a document by their names. */
export function fragmentsOf({ definitions }: DocumentNode): Map<string, FragmentDefinitionNode> {
  return new Map(
    definitions.flatMap((each) =>
      each.kind === Kind.FRAGMENT_DEFINITION ? [[each.name.value, each] as const] : [],
    ),
  );
}
