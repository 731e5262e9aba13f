import {
  getNamedType,
  isAbstractType,
  isInterfaceType,
  isObjectType,
  isUnionType,
  Kind,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLObjectType,
  type GraphQLSchema,
  type SelectionNode,
} from 'graphql';
import { selectionsOf, type CollectedField } from '../../answers/collect-fields.ts';
import { codedError } from '../../errors.ts';
import type { AllowedMutations } from '../../schema/served/served-schema.ts';

export interface RootRules {
  /** As callers see it. */
  readonly schema: GraphQLSchema;
  /** The fields of the query root that the gateway answers itself. */
  readonly derived: ReadonlySet<string>;
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

/**
 * Checks fields of a root type that are selected below the root, which a schema may allow. Only the service can answer
 * them there: derived fields are unavailable, and mutations still have to be allowed by MUTATIONS.
 *
 * @throws BAD_USER_INPUT, FORBIDDEN
 */
export function checkBelowRoot(
  rules: RootRules,
  fields: Iterable<CollectedField>,
  root: GraphQLObjectType,
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
): void {
  const { schema, derived } = rules;
  const [query, mutation] = [schema.getQueryType(), schema.getMutationType()];
  if (!reachesRoots(schema)) return;
  const seen = new Set<string>();
  for (const { nodes } of fields) check(selectionsOf(nodes), below(root, nodes[0]!.name.value));

  function check(
    selections: readonly SelectionNode[],
    parent: GraphQLCompositeType | undefined,
  ): void {
    if (!parent) return;
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) {
        const { value: name } = selection.name;
        if (canBe(schema, parent, query) && derived.has(name)) throw notBelowRoot(name);
        if (canBe(schema, parent, mutation) && !name.startsWith('__') && !isAllowed(rules, name)) {
          throw refusedMutation(name);
        }
        check(selection.selectionSet?.selections ?? [], below(parent, name));
        continue;
      }
      const fragment =
        selection.kind === Kind.INLINE_FRAGMENT ? selection : fragments.get(selection.name.value);
      if (!fragment) continue;
      const on = fragment.typeCondition
        ? schema.getType(fragment.typeCondition.name.value)
        : parent;
      if (selection.kind === Kind.FRAGMENT_SPREAD) {
        if (seen.has(selection.name.value)) continue;
        seen.add(selection.name.value);
      }
      check(fragment.selectionSet.selections, on as GraphQLCompositeType);
    }
  }
}

function below(parent: GraphQLCompositeType, field: string): GraphQLCompositeType | undefined {
  if (isUnionType(parent)) return undefined;
  const type = parent.getFields()[field]?.type;
  const named = type && getNamedType(type);
  return isObjectType(named) || isAbstractType(named) ? named : undefined;
}

function canBe(
  schema: GraphQLSchema,
  type: GraphQLCompositeType,
  root: GraphQLObjectType | null | undefined,
): boolean {
  if (!root) return false;
  return type === root || (isAbstractType(type) && schema.isSubType(type, root));
}

const reachability = new WeakMap<GraphQLSchema, boolean>();

/** Whether any field of the schema returns a root type. In nearly all schemas none does. */
function reachesRoots(schema: GraphQLSchema): boolean {
  const known = reachability.get(schema);
  if (known !== undefined) return known;
  const roots = [schema.getQueryType(), schema.getMutationType()];
  const reaches = Object.values(schema.getTypeMap()).some(
    (type) =>
      (isObjectType(type) || isInterfaceType(type)) &&
      Object.values(type.getFields()).some((field) => {
        const named = getNamedType(field.type);
        const isComposite = isObjectType(named) || isAbstractType(named);
        return isComposite && roots.some((root) => canBe(schema, named, root));
      }),
  );
  reachability.set(schema, reaches);
  return reaches;
}

function notBelowRoot(field: string) {
  return codedError(
    'BAD_USER_INPUT',
    `The field ${field} can only be selected at the root of an operation. Move it there, or select a field of the service here.`,
  );
}
