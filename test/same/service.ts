import {
  execute,
  GraphQLScalarType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isScalarType,
  isSpecifiedScalarType,
  Kind,
  parse,
  typeFromAST,
  validate,
  valueFromASTUntyped,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  type GraphQLSchema,
  type GraphQLType,
  type NamedTypeNode,
  type OperationDefinitionNode,
  type TypeNode,
  type ValueNode,
} from 'graphql';
import { printExactly, readExactly, Verbatim } from './exact-json.ts';

/** Answers one request with the text of a body. */
export type Service = (operation: ReceivedOperation) => string | Promise<string>;

/** One request, as it was received. */
export interface ReceivedOperation {
  readonly query: string;
  /** Numbers that JavaScript cannot represent are `Verbatim`. */
  readonly variables?: Record<string, unknown> | null;
  readonly operationName?: string | null;
}

export interface ServiceOptions extends Pick<
  ExecutionArgs,
  'rootValue' | 'fieldResolver' | 'typeResolver'
> {
  readonly schema: GraphQLSchema;
  /** Adds to the answer what graphql-js cannot return: `extensions`, other members of an error. */
  readonly amend?: (result: object, operation: ReceivedOperation) => object;
}

/** A service that answers with graphql-js, as its documentation shows, and writes numbers digit for digit. */
export function serviceOf({ schema, amend = (result) => result, ...how }: ServiceOptions): Service {
  keepDigits(schema);
  return async (operation) => {
    const answer = await answerTo(operation, schema, how);
    return printExactly(amend({ ...answer }, operation));
  };
}

async function answerTo(
  { query, variables, operationName }: ReceivedOperation,
  schema: GraphQLSchema,
  how: Omit<ServiceOptions, 'schema' | 'amend'>,
): Promise<ExecutionResult> {
  let document: DocumentNode;
  try {
    document = parse(query);
  } catch (error) {
    return { errors: [error as never] };
  }
  const errors = validate(schema, document);
  if (errors.length > 0) return { errors };
  const operation = operationOf(document, operationName);
  return execute({
    ...how,
    schema,
    document,
    variableValues: operation && variablesOf(operation, schema, variables ?? {}),
    operationName,
  });
}

function operationOf({ definitions }: DocumentNode, name: string | null | undefined) {
  return definitions.find(
    (definition): definition is OperationDefinitionNode =>
      definition.kind === Kind.OPERATION_DEFINITION &&
      (name === undefined || name === null || definition.name?.value === name),
  );
}

/** Custom scalars receive the digits that the caller wrote; Int and Float receive a double. */
function variablesOf(
  { variableDefinitions = [] }: OperationDefinitionNode,
  schema: GraphQLSchema,
  values: Record<string, unknown>,
): Record<string, unknown> {
  const types = new Map(
    variableDefinitions.map(({ variable, type }) => [variable.name.value, inputType(schema, type)]),
  );
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, inputFor(types.get(name), value)]),
  );
}

function inputType(schema: GraphQLSchema, node: TypeNode): GraphQLType | undefined {
  // Its overloads accept each kind of node, but not their union.
  return typeFromAST(schema, node as NamedTypeNode);
}

function inputFor(type: GraphQLType | undefined, value: unknown): unknown {
  if (isNonNullType(type)) return inputFor(type.ofType, value);
  if (isListType(type)) {
    const inner = type.ofType;
    return Array.isArray(value)
      ? value.map((item) => inputFor(inner, item))
      : inputFor(inner, value);
  }
  if (value instanceof Verbatim) return isCustomScalar(type) ? value : Number(value.text);
  if (!isInputObjectType(type) || typeof value !== 'object' || value === null) return value;
  const fields = type.getFields();
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, inputFor(fields[name]?.type, inner)]),
  );
}

/** A custom scalar without a meaning of its own returns its input. */
function keepDigits(schema: GraphQLSchema): void {
  for (const type of Object.values(schema.getTypeMap())) {
    if (isCustomScalar(type) && type.parseValue === IDLE.parseValue)
      type.parseLiteral = fromLiteral;
  }
}

const IDLE = new GraphQLScalarType({ name: 'Idle' });

function isCustomScalar(type: unknown): type is GraphQLScalarType {
  return isScalarType(type) && !isSpecifiedScalarType(type);
}

function fromLiteral(node: ValueNode, variables?: Record<string, unknown> | null): unknown {
  switch (node.kind) {
    case Kind.INT:
    case Kind.FLOAT:
      return readExactly(node.value);
    case Kind.LIST:
      return node.values.map((value) => fromLiteral(value, variables));
    case Kind.OBJECT:
      return Object.fromEntries(
        node.fields.map(({ name, value }) => [name.value, fromLiteral(value, variables)]),
      );
    default:
      return valueFromASTUntyped(node, variables);
  }
}
