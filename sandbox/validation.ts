import {
  getNamedType,
  GraphQLError,
  isInterfaceType,
  isObjectType,
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

/** Returns the error for an introspection that selects one of these fields in several places. */
export function badFaithOf(document: DocumentNode): GraphQLError | undefined {
  const fragments = fragmentsOf(document);
  const places = new Map<string, Set<string>>();
  for (const each of document.definitions) {
    if (each.kind === Kind.OPERATION_DEFINITION) note(each.selectionSet, '', false);
  }
  const repeated = [...places].find(([, { size }]) => size > 1)?.[0];
  return repeated === undefined
    ? undefined
    : new GraphQLError(
        `This request is not asking for introspection in good faith - ${repeated} is present too often!`,
        { extensions: { classification: 'BadFaithIntrospection' } },
      );

  function note({ selections }: SelectionSetNode, path: string, isWithin: boolean): void {
    for (const selection of selections) {
      if (selection.kind === Kind.FRAGMENT_SPREAD) {
        note(fragments.get(selection.name.value)!.selectionSet, path, isWithin);
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        note(selection.selectionSet, path, isWithin);
      } else {
        const name = selection.name.value;
        const isRoot = path === '' && ROOT_FIELDS.has(name);
        if (path !== '' && !isWithin) continue;
        const place = `${path}.${selection.alias?.value ?? name}`;
        if (isRoot) count(`Query.${name}`, place);
        if (isWithin && FIELDS_OF_TYPE.has(name)) count(`__Type.${name}`, place);
        if (selection.selectionSet && (isRoot || isWithin)) {
          note(selection.selectionSet, place, true);
        }
      }
    }
  }

  function count(field: string, place: string): void {
    const known = places.get(field) ?? new Set();
    places.set(field, known.add(place));
  }
}

const ROOT_FIELDS: ReadonlySet<string> = new Set(['__schema', '__type']);
const FIELDS_OF_TYPE: ReadonlySet<string> = new Set([
  'fields',
  'inputFields',
  'interfaces',
  'possibleTypes',
]);

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
function fragmentsOf({ definitions }: DocumentNode): Map<string, FragmentDefinitionNode> {
  return new Map(
    definitions.flatMap((each) =>
      each.kind === Kind.FRAGMENT_DEFINITION ? [[each.name.value, each] as const] : [],
    ),
  );
}
