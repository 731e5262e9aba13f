import {
  getOperationAST,
  OperationTypeNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type FieldNode,
  type OperationDefinitionNode,
} from 'graphql';
import { codedError } from '../errors.ts';
import { objectTypesOf, type DerivedList } from '../schema/derived.ts';
import type { AllowedMutations } from '../schema/served/served-schema.ts';
import { fragmentsOf, onlyOperation, type Fragments } from '../schema/selections.ts';
import type { FieldValue } from './answer.ts';
import type { Call } from './call.ts';
import { underConditions, type SelectedField } from './selected-fields.ts';
import type { Shared } from './shared.ts';
import { fieldNode, fragmentNode, keyOf } from './syntax.ts';

/**
 * An operation of which the parts can be sent to the service, still under served names. Fragments stay as they were
 * written, so that the time to compile it is bounded by its length.
 */
export interface PreparedOperation {
  readonly definition: OperationDefinitionNode;
  readonly fragments: Fragments;
  /**
   * The derived fields of nested lists, by what is sent in their place: a `__typename` under the caller's key. Beside it,
   * the id of the parent is selected (`parentIdKey`).
   */
  readonly nested: ReadonlyMap<FieldNode, NestedField>;
  /** Compiles the derived field of a nested list. */
  readonly compileNested: (derived: DerivedList, field: SelectedField) => NestedFiller;
}

/** Answers the derived field of a nested list for one parent. */
export interface NestedFiller {
  /** @param parent its id as JSON */
  answer(call: Call, parent: string): Promise<FieldValue>;
}

/** A derived field of a nested list, as a caller selects it. */
interface NestedField {
  readonly derived: DerivedList;
  readonly node: FieldNode;
}

/**
 * Prepares an operation of a document, which is valid: replaces the derived fields of nested lists.
 *
 * A derived field of the root that is selected below the root goes to the service, which refuses it.
 *
 * @throws FORBIDDEN for a mutation that is switched off
 */
export function prepareOperation(
  { schema, derived, mutations }: Shared,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): Omit<PreparedOperation, 'compileNested'> {
  const nested = new Map<FieldNode, NestedField>();
  const types = new TypeInfo(schema);
  const root = schema.getQueryType()!.name;
  const mutation = schema.getMutationType();
  const rewritten: DocumentNode = visit(
    onlyOperation(document, operation).document,
    visitWithTypeInfo(types, {
      Field: {
        enter: ({ name: { value: name } }) => {
          const isMutation = objectTypesOf(schema, types.getParentType()!).includes(mutation!);
          if (isMutation && !name.startsWith('__') && !isAllowed(mutations, name)) {
            throw refusedMutation(name);
          }
        },
        leave: (node) => {
          const list = derived.get(`${types.getParentType()!.name}.${node.name.value}`);
          if (!list || !('adapter' in list) || list.parent === root) return undefined;
          // The key in the answer stays where the caller selected it, under the caller's conditions.
          const key = fieldNode('__typename', { alias: keyOf(node) });
          const placeholder = { ...key, directives: node.directives ?? [] };
          nested.set(placeholder, { derived: list, node });
          const id = fieldNode('id', { alias: parentIdKey(list.parent) });
          return fragmentNode(undefined, [placeholder, id]);
        },
      },
    }),
  );
  const definition = getOperationAST(rewritten, operation.name?.value)!;
  return { definition, fragments: fragmentsOf(rewritten), nested };
}

/** The key under which the id of a parent is selected. It names the type: ids of two types may differ in theirs. */
export function parentIdKey(type: string): string {
  return `_rs_${type}_id`;
}

function isAllowed(mutations: AllowedMutations, field: string): boolean {
  return mutations === 'all' || (mutations !== 'off' && mutations.includes(field));
}

function refusedMutation(field: string) {
  return codedError(
    'FORBIDDEN',
    `The mutation ${field} is switched off here. The operator can allow it with MUTATIONS.`,
  );
}

/** What the gateway asks for itself is a query, whatever else the operation does. */
export function asQuery(prepared: PreparedOperation): PreparedOperation {
  const definition = { ...prepared.definition, operation: OperationTypeNode.QUERY };
  return { ...prepared, definition };
}

/**
 * Returns an operation with only these fields of its root, each under the conditions around it. Directives of the service
 * at fragments around them are left out.
 */
export function rootPart(
  { definition, ...prepared }: PreparedOperation,
  fields: readonly SelectedField[],
): PreparedOperation {
  const selections = fields.flatMap(({ uses }) =>
    uses.flatMap(({ node, conditions }) => underConditions([node], conditions)),
  );
  const selectionSet = { ...definition.selectionSet, selections };
  return { ...prepared, definition: { ...definition, selectionSet } };
}
