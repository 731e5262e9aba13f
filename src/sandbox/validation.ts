import {
  BREAK,
  getNamedType,
  GraphQLError,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  Kind,
  valueFromAST,
  visit,
  type ASTNode,
  type ASTVisitor,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValidationContext,
} from 'graphql';
import type { Wording } from './habits.ts';

/** Refuses the fields that describe the schema. `__typename` is not one of them. */
export function noIntrospection(wording: Wording): (context: ValidationContext) => ASTVisitor {
  return (context) => ({
    Field(node) {
      const type = getNamedType(context.getType());
      if (!type || !isIntrospectionType(type) || !node.name.value.startsWith('__')) return;
      context.reportError(refusal(node.name.value, wording));
    },
  });
}

function refusal(field: string, wording: Wording): GraphQLError {
  switch (wording) {
    case 'graphql-js':
      return new GraphQLError(
        `GraphQL introspection has been disabled, but the requested query contained the field "${field}".`,
      );
    case 'graphql-java':
      return new GraphQLError('Introspection has been disabled for this request', {
        extensions: { classification: 'IntrospectionDisabled' },
      });
    case 'hot-chocolate':
      return new GraphQLError('Introspection is not allowed for the current request.', {
        extensions: { field, code: 'HC0046' },
      });
  }
}

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

/** Rewords a validation error as another server would. Only the usual errors are known; others stay as they are. */
export function worded(
  error: GraphQLError,
  document: DocumentNode,
  wording: Wording,
): GraphQLError {
  if (wording === 'graphql-js') return error;
  const place = placeOf(error.nodes?.[0], document);
  const java = (kind: string, message: string) =>
    reworded(error, `Validation error (${kind}@[${place.join('/')}]) : ${message}`, {
      classification: 'ValidationError',
    });
  const isJava = wording === 'graphql-java';
  const [, field, type] = /^Cannot query field "(\w+)" on type "(\w+)"/.exec(error.message) ?? [];
  if (field !== undefined) {
    return isJava
      ? java('FieldUndefined', `Field '${field}' in type '${type}' is undefined`)
      : reworded(error, `The field \`${field}\` does not exist on the type \`${type}\`.`, {
          type,
          field,
          responseName: place.at(-1),
          specifiedBy: `${SPECIFICATION}#sec-Field-Selections-on-Objects-Interfaces-and-Unions-Types`,
        });
  }
  const [, argument] = /^Unknown argument "(\w+)" on field/.exec(error.message) ?? [];
  if (argument !== undefined) {
    return isJava
      ? java('UnknownArgument', `Unknown field argument '${argument}'`)
      : reworded(error, `The argument \`${argument}\` does not exist.`, {
          argument,
          specifiedBy: `${SPECIFICATION}#sec-Argument-Names`,
        });
  }
  const [, unknown] = /^Unknown type "(\w+)"/.exec(error.message) ?? [];
  if (unknown !== undefined) {
    return isJava
      ? java('UnknownType', `Unknown type '${unknown}'`)
      : reworded(error, `Unknown type \`${unknown}\`.`, {
          typeCondition: unknown,
          specifiedBy: `${SPECIFICATION}#sec-Fragment-Spread-Type-Existence`,
        });
  }
  return error;
}

const SPECIFICATION = 'https://spec.graphql.org/October2021/';

/** The names of the fields around a node, and its own if it is a field. */
function placeOf(node: ASTNode | undefined, document: DocumentNode): string[] {
  let place: string[] = [];
  visit(document, {
    enter(each, _key, _parent, _path, ancestors) {
      if (each !== node) return undefined;
      place = [...ancestors, each].flatMap((around) =>
        'kind' in around && around.kind === Kind.FIELD ? [around.name.value] : [],
      );
      return BREAK;
    },
  });
  return place;
}

function reworded(
  { nodes }: GraphQLError,
  message: string,
  extensions: Record<string, unknown>,
): GraphQLError {
  return new GraphQLError(message, { ...(nodes && { nodes }), extensions });
}

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
