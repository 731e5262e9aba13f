import {
  getNamedType,
  isAbstractType,
  isCompositeType,
  isUnionType,
  type DirectiveNode,
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLObjectType,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { codedError } from '../../errors.ts';
import { serviceDirective } from '../../schema/incremental-directives.ts';
import type { AllowedMutations } from '../../schema/served/served-schema.ts';
import { walkFields, type FieldWalk, type Fragments } from '../../selections.ts';

export interface RootRules {
  /** As callers see it. */
  readonly schema: GraphQLSchema;
  /** The fields of the query root that the gateway answers itself. */
  readonly derived: Pick<ReadonlySet<string>, 'has'>;
  /** The derived fields of nested lists, as `Type.field`. */
  readonly derivedBelow: Pick<ReadonlySet<string>, 'has'>;
  /** The types that only the gateway has, such as connections and edges. */
  readonly derivedTypes: ReadonlySet<string>;
  /** The derived fields whose fragments are not sent, because they select records of several types. */
  readonly derivedAbstract: ReadonlySet<string>;
  /** The mutations that callers may use, by their served names. */
  readonly mutations: AllowedMutations;
}

export function isAllowed({ mutations }: RootRules, field: string): boolean {
  return mutations === 'all' || (mutations !== 'off' && mutations.includes(field));
}

export function refusedMutation(field: string) {
  return codedError(
    'FORBIDDEN',
    `The mutation ${field} is switched off here. The operator can allow it with MUTATIONS.`,
  );
}

/** Where a field is selected. */
interface Place {
  readonly on: GraphQLCompositeType;
  readonly isRoot: boolean;
  /** A directive of the service on a fragment around it. */
  readonly directive: DirectiveNode | undefined;
  /** The field around it, if fragments in that are not sent. */
  readonly inside: string | undefined;
}

/**
 * Checks what validation does not know.
 *
 * - A directive of the service on a derived field, in a derived object such as an edge, or on a fragment around either,
 *   cannot be sent to its place: the gateway answers the field with requests of its own.
 * - A schema may allow fields of a root type below the root, where only the service can answer them. Derived fields are
 *   unavailable there, and mutations still have to be allowed by MUTATIONS.
 *
 * @throws BAD_USER_INPUT, FORBIDDEN
 */
export function checkRootRules(
  rules: RootRules,
  { operation, selectionSet }: OperationDefinitionNode,
  fragments: Fragments,
): void {
  const { schema, derived, derivedBelow, derivedTypes, derivedAbstract } = rules;
  const [query, mutation] = [schema.getQueryType(), schema.getMutationType()];
  const walk: FieldWalk<Place> = {
    fragments,
    enter: (selection, fragment, place) => {
      const { typeCondition } = fragment;
      const type = typeCondition && schema.getType(typeCondition.name.value);
      const directive =
        place.directive ?? serviceDirective(selection) ?? serviceDirective(fragment);
      return { ...place, on: isCompositeType(type) ? type : place.on, directive };
    },
    // The type inside of a fragment is always the same.
    keyOf: ({ isRoot, directive, inside }) => `${isRoot} ${directive !== undefined} ${inside}`,
    field: check,
  };
  const entered = new Map<string, Set<unknown>>();
  const on = schema.getRootType(operation)!;
  const root: Place = { on, isRoot: true, directive: undefined, inside: undefined };
  walkFields(selectionSet.selections, root, walk, entered);

  function check(node: FieldNode, { on: parent, isRoot, directive, inside }: Place): void {
    const { value: name } = node.name;
    const isOfQuery = canBe(schema, parent, query) && derived.has(name);
    if (isOfQuery && !isRoot) throw notBelowRoot(name);
    const isDerived = derivedBelow.has(`${parent.name}.${name}`) || derivedTypes.has(parent.name);
    if (isOfQuery || isDerived) {
      const misplaced = directive ?? serviceDirective(node);
      if (misplaced) throw notAt(name, misplaced);
    }
    if (inside !== undefined && directive) throw notInside(inside, directive);
    const isMutation = !isRoot && canBe(schema, parent, mutation) && !name.startsWith('__');
    if (isMutation && !isAllowed(rules, name)) throw refusedMutation(name);
    const below = typeBelow(parent, name);
    if (!below || !node.selectionSet) return;
    const isAbstract = isOfQuery && derivedAbstract.has(name);
    const place: Place = {
      on: below,
      isRoot: false,
      directive: undefined,
      inside: isAbstract ? name : undefined,
    };
    walkFields(node.selectionSet.selections, place, walk, entered);
  }
}

function typeBelow(parent: GraphQLCompositeType, field: string): GraphQLCompositeType | undefined {
  const type = isUnionType(parent) ? undefined : getNamedType(parent.getFields()[field]?.type);
  return isCompositeType(type) ? type : undefined;
}

function canBe(
  schema: GraphQLSchema,
  type: GraphQLCompositeType,
  root: GraphQLObjectType | null | undefined,
): boolean {
  if (!root) return false;
  return type === root || (isAbstractType(type) && schema.isSubType(type, root));
}

function notBelowRoot(field: string) {
  return codedError(
    'BAD_USER_INPUT',
    `The field ${field} can only be selected at the root of an operation. Move it there, or select a field of the service here.`,
  );
}

function notAt(field: string, { name }: DirectiveNode) {
  return codedError(
    'BAD_USER_INPUT',
    `@${name.value} cannot be used at ${field}, nor at a fragment around it, because the gateway answers this field with ` +
      `requests of its own. ${REMOVE}`,
  );
}

function notInside(field: string, { name }: DirectiveNode) {
  return codedError(
    'BAD_USER_INPUT',
    `@${name.value} cannot be used at a fragment directly in ${field}, because the gateway requests the records of each ` +
      `type on their own. ${REMOVE}`,
  );
}

const REMOVE =
  'Remove it; a directive of the operation is sent with each request, and one of a field of the service with this field.';
