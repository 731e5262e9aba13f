import {
  getNamedType,
  getNullableType,
  GraphQLError,
  isInterfaceType,
  isLeafType,
  isListType,
  isObjectType,
  isRequiredArgument,
  Kind,
  parse,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type FieldNode,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  type SelectionSetNode,
} from 'graphql';
import { OperatorMistake } from '../errors.ts';

/** Parses the fields of a record, written as in GraphQL: `id title company { name }`. @throws OperatorMistake */
export function selectionOf(fields: string): SelectionSetNode {
  const example = `--fields "id title company { name }"`;
  return onlyField(`{ list {${fields}\n} }`, '--fields', example).selectionSet!;
}

/** @param args the filters of a list, written as in GraphQL: `status: OPEN` @throws OperatorMistake */
export function checkFilters(args: string): void {
  onlyField(`{ list(${args}\n) }`, '--args', `--args 'status: OPEN'`);
}

/**
 * Parses an operation around the text of an option.
 *
 * @throws OperatorMistake if it is not one field: a text that closes a bracket which it did not open makes more of it
 */
function onlyField(operation: string, option: string, example: string): FieldNode {
  let why = 'it closes a bracket that it did not open.';
  try {
    const [only, ...others] = parse(operation).definitions;
    if (only?.kind === Kind.OPERATION_DEFINITION && others.length === 0) {
      const [field, ...beside] = only.selectionSet.selections;
      if (field?.kind === Kind.FIELD && beside.length === 0) return field;
    }
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    why = error.message;
  }
  throw new OperatorMistake(
    `${option} cannot be read: ${why} It is written as in GraphQL, without braces around it: ${example}.`,
  );
}

/**
 * Returns the fields of a record that need neither a selection nor an argument, as in GraphQL.
 *
 * @throws OperatorMistake for a record of several types, and for one whose type is not known
 */
export function plainFields(record: GraphQLNamedType | undefined): string {
  const names = fieldsOf(record)
    .filter((field) => isLeafType(getNamedType(field.type)) && !field.args.some(isRequiredArgument))
    .map(({ name }) => name);
  if (names.length === 0) throw new OperatorMistake(record ? NO_FIELDS : NO_SCHEMA);
  return names.join(' ');
}

const NO_FIELDS =
  'The records of this list have several types, or no plain fields. Name what is exported with --fields "…".';
const NO_SCHEMA =
  'The gateway does not show its schema, so the fields of a record are not known here. Name them with ' +
  '--fields "id …", or have the operator set INTROSPECTION=on.';

/** The names of selected lists of which only the first page would come: their page is selected without a number of elements. */
export function cutLists(
  selection: SelectionSetNode,
  record: GraphQLNamedType | undefined,
  schema: GraphQLSchema | undefined,
): string[] {
  const types = schema && new TypeInfo(schema, record);
  const cut = new Set<string>();
  const around: FieldNode[] = [];
  const Field = {
    enter: (node: FieldNode) => {
      const type = types?.getType();
      const parent = types?.getParentType();
      const isElements = types
        ? type && parent && isListType(getNullableType(type)) && typeOf(parent, 'pageInfo')
        : ['items', 'edges', 'nodes'].includes(node.name.value);
      const page = around.at(-1);
      const hasSize = page?.arguments?.some(({ name }) => SIZE.test(name.value));
      if (isElements && page && !hasSize) cut.add(page.name.value);
      around.push(node);
    },
    leave: () => void around.pop(),
  };
  visit(selection, types ? visitWithTypeInfo(types, { Field }) : { Field });
  return [...cut];
}

const SIZE = /^(?:first|last|limit)$|size$/i;

export function onlyFirstPage(name: string): OperatorMistake {
  return new OperatorMistake(
    `--fields: only the first page of ${name} would be exported. Take all of it with its all… field if it has one, ` +
      `or say how many elements to take, such as ${name}(first: 50).`,
  );
}

export type Field = GraphQLField<unknown, unknown>;

export function fieldsOf(type: GraphQLNamedType | undefined): readonly Field[] {
  if (!isObjectType(type) && !isInterfaceType(type)) return [];
  return Object.values(type.getFields()).filter(
    ({ deprecationReason }) => deprecationReason == null,
  );
}

export function typeOf(type: GraphQLNamedType, field: string): GraphQLNamedType | undefined {
  const found = fieldsOf(type).find(({ name }) => name === field);
  return found && getNamedType(found.type);
}
