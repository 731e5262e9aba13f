import {
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type GraphQLCompositeType,
  type GraphQLSchema,
  GraphQLIncludeDirective,
  GraphQLSkipDirective,
  isLeafType,
  Kind,
  type DirectiveNode,
  type InlineFragmentNode,
  type FieldNode,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  type GraphQLError,
} from 'graphql';
import { objectTypesOf } from '../schema/derived.ts';
import { isIncremental } from '../schema/incremental-directives.ts';
import {
  fieldsByKey,
  fragmentsOf,
  selectionsOf,
  visitFields,
  type Fragments,
} from '../selections.ts';

/** Whether a valid document selects one of these fields, on any of the types on which it may be selected. */
export function selectsField(
  schema: GraphQLSchema,
  document: DocumentNode,
  fields: ReadonlySet<string>,
): boolean {
  if (fields.size === 0) return false;
  let isSelected = false;
  visitFields(schema, document, ({ name }, parent) => {
    isSelected ||= isOneOf(schema, parent, name.value, fields);
  });
  return isSelected;
}

/** Whether a field is one of these, on the type itself, on a possible type of it, or on an interface of that. */
function isOneOf(
  schema: GraphQLSchema,
  parent: GraphQLCompositeType,
  field: string,
  fields: ReadonlySet<string>,
): boolean {
  const possible = objectTypesOf(schema, parent);
  return [parent, ...possible, ...possible.flatMap((type) => type.getInterfaces())].some(
    ({ name }) => fields.has(`${name}.${field}`),
  );
}

/*
 * Private keys
 *
 * In the documents that graphql-tools sends, the keys of the caller collide with fields that a resolver or a merge
 * requires. `{ person { firstName: lastName fullName } }` selects both `firstName: lastName` and, for the resolver of
 * `fullName`, `firstName` in one object. So a caller could choose what resolvers get, and which keys are sent to a
 * second service.
 *
 * Therefore every field of the caller is executed under a private key: the caller's key with SUFFIX. Keys without
 * SUFFIX belong to resolvers and merges. The caller's keys are restored when the answer is written.
 */

/** No field of the schema ends with it (addition-mistakes.ts). A caller's key may, and gets a second one. */
export const SUFFIX = '__rs';

/** The keys of one object of an answer; those of all its possible types together. */
export type Keys = ReadonlyMap<string, Key>;

export const NO_KEYS: Keys = new Map();

export interface Key {
  /** The caller's key. */
  readonly name: string;
  /** The name of the field's type, if that is a leaf. */
  readonly leaf: string | undefined;
  readonly below: Keys;
}

/**
 * Gives each field a private key. `@stream` is removed: what is added is answered whole.
 *
 * @param added the fields that resolvers of a company may answer, as `Type.field`
 */
export function withPrivateKeys(
  schema: GraphQLSchema,
  document: DocumentNode,
  added: ReadonlySet<string>,
): DocumentNode {
  const types = new TypeInfo(schema);
  return visit(
    document,
    visitWithTypeInfo(types, {
      Directive: (node) => (isIncremental(node) ? null : undefined),
      Field: {
        leave: (node) => {
          const key = (node.alias ?? node.name).value;
          // `__typename` gets one too: graphql-tools removes a fragment that has no other field.
          const alias = { kind: Kind.NAME, value: `${key}${SUFFIX}` } as const;
          const parent = types.getParentType();
          const isAdded = parent && isOneOf(schema, parent, node.name.value, added);
          if (!isAdded || !node.selectionSet) return withoutConditions({ ...node, alias });
          return withoutConditions({ ...node, alias, selectionSet: inFragment(node.selectionSet) });
        },
      },
    }),
  );
}

/**
 * Moves `@skip` and `@include` of a field to a fragment around it. Of two equal fields, graphql-tools keeps the first
 * one: without a fragment `{ id @skip(if: true) id }` would have no `id`.
 */
function withoutConditions(field: FieldNode): FieldNode | InlineFragmentNode {
  const { directives = [] } = field;
  const conditions = directives.filter(isCondition);
  if (conditions.length === 0) return field;
  const others = directives.filter((directive) => !isCondition(directive));
  const selections = [{ ...field, directives: others }];
  return {
    kind: Kind.INLINE_FRAGMENT,
    directives: conditions,
    selectionSet: { kind: Kind.SELECTION_SET, selections },
  };
}

function isCondition({ name: { value } }: DirectiveNode): boolean {
  return value === GraphQLSkipDirective.name || value === GraphQLIncludeDirective.name;
}

/**
 * Wraps selections in a fragment. For an object that a resolver returns, graphql-tools requests the other fields from
 * the service that has them, with everything that they require; but it skips added fields that are not in a fragment.
 */
function inFragment(selectionSet: SelectionSetNode): SelectionSetNode {
  return { kind: Kind.SELECTION_SET, selections: [{ kind: Kind.INLINE_FRAGMENT, selectionSet }] };
}

/** @param document with one operation */
export function keysOf(schema: GraphQLSchema, document: DocumentNode): Keys {
  const operation = document.definitions.find(
    (node): node is OperationDefinitionNode => node.kind === Kind.OPERATION_DEFINITION,
  )!;
  const leaves = leafTypes(schema, document);
  return keysIn(operation.selectionSet.selections, leaves, fragmentsOf(document));
}

function leafTypes(schema: GraphQLSchema, document: DocumentNode): ReadonlyMap<FieldNode, string> {
  const leaves = new Map<FieldNode, string>();
  visitFields(schema, document, (node, _, type) => {
    if (isLeafType(type)) leaves.set(node, type.name);
  });
  return leaves;
}

function keysIn(
  selections: readonly SelectionNode[],
  leaves: ReadonlyMap<FieldNode, string>,
  fragments: Fragments,
): Keys {
  return new Map(
    Array.from(fieldsByKey(selections, fragments), ([key, nodes]) => {
      const leaf = leaves.get(nodes[0]!);
      const below = keysIn(selectionsOf(nodes), leaves, fragments);
      return [key, { name: callerKey(key), leaf, below }];
    }),
  );
}

/** Returns the caller's key. */
export function callerKey(key: string): string {
  return key.endsWith(SUFFIX) ? key.slice(0, -SUFFIX.length) : key;
}

/*
 * Two types of a union may require fields of the same name and different types, such as `id: Int!` and `id: ID!`. They
 * cannot be selected together, so each gets a key with the name of its type.
 */

/** Whether an operation was refused because fields cannot be selected together. */
export function areInConflict([error]: readonly GraphQLError[]): boolean {
  return error !== undefined && /^Fields ".+" conflict because /.test(error.message);
}

/** Gives every field without an alias a key with the name of its type: only resolvers and merges select such fields. */
export function withTypedKeys(schema: GraphQLSchema, document: DocumentNode): DocumentNode {
  const types = new TypeInfo(schema);
  return visit(
    document,
    visitWithTypeInfo(types, {
      Field: ({ alias, name, ...node }) => {
        if (alias || name.value === '__typename') return undefined;
        const typed = `${name.value}${MARK}${types.getParentType()?.name ?? ''}_`;
        return { ...node, name, alias: { kind: Kind.NAME, value: typed } };
      },
    }),
  );
}

/** Not in a name of the schema; a caller's key ends differently. */
const MARK = '__rs_';

/** Returns the key without its type. */
export function withoutType(key: string): string {
  const at = key.endsWith('_') ? key.lastIndexOf(MARK) : -1;
  return at < 0 ? key : key.slice(0, at);
}

/** Restores the plain keys. */
export function withPlainKeys(value: unknown, keys: Keys): unknown {
  if (Array.isArray(value)) return value.map((element) => withPlainKeys(element, keys));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const key = keys.get(name);
      const isLeaf = key?.leaf !== undefined;
      return [withoutType(name), isLeaf ? member : withPlainKeys(member, key?.below ?? NO_KEYS)];
    }),
  );
}

/**
 * Returns what was selected from the `data` of another service. Anything else in it would replace values that the
 * recruiting service returned for the same record.
 */
export function onlySelected(value: unknown, keys: Keys): unknown {
  if (Array.isArray(value)) return value.map((element: unknown) => onlySelected(element, keys));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).flatMap(([name, member]: [string, unknown]) => {
    const key = keys.get(name);
    if (!key) return [];
    return [[name, key.leaf === undefined ? onlySelected(member, key.below) : member] as const];
  });
  return Object.fromEntries(entries);
}
