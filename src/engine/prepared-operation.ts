import {
  isAbstractType,
  Kind,
  OperationTypeNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLObjectType,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { codedError } from '../errors.ts';
import type { DerivedField, ListKind } from '../schema/derived.ts';
import type { AllowedMutations } from '../schema/served/served-schema.ts';
import { onlyOperation, type Fragments } from '../selections.ts';
import { underConditions, type SelectedField } from './selected-fields.ts';
import { fieldNode, keyOf } from './syntax.ts';

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
}

/** A derived field of a nested list, as a caller selects it. */
interface NestedField {
  readonly derived: ListDerivation;
  readonly node: FieldNode;
}

export type ListDerivation = DerivedField<ListKind>;

export interface OperationRules {
  /** As callers see it. */
  readonly schema: GraphQLSchema;
  /** The derived fields of the query root, by name. */
  readonly derived: ReadonlyMap<string, DerivedField>;
  /** Those of nested lists, by `Type.field`. */
  readonly derivedBelow: ReadonlyMap<string, ListDerivation>;
  /** By their served names. */
  readonly mutations: AllowedMutations;
}

/**
 * Prepares an operation of a document, which is valid: removes `@stream`, and replaces the derived fields of nested lists.
 *
 * A derived field of the root that is selected below the root goes to the service, which refuses it.
 *
 * @throws FORBIDDEN for a mutation that is switched off
 */
export function prepareOperation(
  rules: OperationRules,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): PreparedOperation {
  const nested = new Map<FieldNode, NestedField>();
  const only = onlyOperation(document, operation).document;
  const rewritten = rewrite(rules, only, nested);
  const fragments = new Map<string, FragmentDefinitionNode>();
  let definition = operation;
  for (const each of rewritten.definitions) {
    if (each.kind === Kind.FRAGMENT_DEFINITION) fragments.set(each.name.value, each);
    if (each.kind === Kind.OPERATION_DEFINITION) definition = each;
  }
  return { definition, fragments, nested };
}

function rewrite(
  { schema, derivedBelow, mutations }: OperationRules,
  document: DocumentNode,
  nested: Map<FieldNode, NestedField>,
): DocumentNode {
  const types = new TypeInfo(schema);
  const mutation = schema.getMutationType();
  return visit(
    document,
    visitWithTypeInfo(types, {
      Directive: ({ name }) => (name.value === 'stream' ? null : undefined),
      Field: {
        enter: ({ name: { value: name } }) => {
          const isMutation = canBe(schema, types.getParentType()!, mutation);
          if (isMutation && !name.startsWith('__') && !isAllowed(mutations, name)) {
            throw refusedMutation(name);
          }
        },
        leave: (node) => {
          const list = derivedBelow.get(`${types.getParentType()!.name}.${node.name.value}`);
          if (!list) return undefined;
          const placeholder = placeholderFor(node);
          nested.set(placeholder, { derived: list, node });
          return placeholder;
        },
      },
      SelectionSet: {
        leave: (node) => {
          const ids = new Map<string, FieldNode>();
          for (const selection of node.selections) {
            const field = selection.kind === Kind.FIELD ? nested.get(selection) : undefined;
            if (!field) continue;
            const { parent } = field.derived;
            ids.set(parent, fieldNode('id', { alias: parentIdKey(parent) }));
          }
          if (ids.size === 0) return undefined;
          return { ...node, selections: [...node.selections, ...ids.values()] };
        },
      },
    }),
  );
}

/** The key under which the id of a parent is selected. It names the type: ids of two types may differ in theirs. */
export function parentIdKey(type: string): string {
  return `_rs_${type}_id`;
}

/** The key in the answer stays where the caller selected it, under the caller's conditions. */
function placeholderFor(node: FieldNode): FieldNode {
  const { directives = [] } = node;
  return { ...fieldNode('__typename', { alias: keyOf(node) }), directives };
}

function canBe(
  schema: GraphQLSchema,
  type: GraphQLCompositeType,
  root: GraphQLObjectType | null | undefined,
): boolean {
  if (!root) return false;
  return type === root || (isAbstractType(type) && schema.isSubType(type, root));
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
