import {
  getNamedType,
  getNullableType,
  isCompositeType,
  isInterfaceType,
  isListType,
  isObjectType,
  Kind,
  type DocumentNode,
  type FragmentDefinitionNode,
  type GraphQLOutputType,
  type GraphQLSchema,
  type InlineFragmentNode,
  type FragmentSpreadNode,
  type SelectionNode,
} from 'graphql';
import type { ResponsePath } from './response-path.ts';

/**
 * How many steps of an error's path lead to something that the schema knows. What follows is inside of a
 * scalar: such a place is the service's own matter, and nothing can be put there.
 *
 * @param document what was asked, in the names of the schema
 */
export function stepsToScalar(
  path: ResponsePath,
  document: DocumentNode,
  schema: GraphQLSchema,
): number {
  const fragments = new Map<string, FragmentDefinitionNode>();
  let below: readonly Below[] = [];
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) {
      fragments.set(definition.name.value, definition);
    } else if (definition.kind === Kind.OPERATION_DEFINITION) {
      const type = schema.getRootType(definition.operation)?.name ?? '';
      below = [{ type, selections: definition.selectionSet.selections }];
    }
  }
  for (let step = 0; step < path.length; step += 1) {
    const spread = new Set<string>();
    const fields = below.flatMap((one) =>
      fieldsAt(path[step]!, one, { schema, fragments, spread }),
    );
    const [first] = fields;
    if (!first) return path.length;
    for (let type = first.type; isListType(type) && typeof path[step + 1] === 'number'; step += 1) {
      type = getNullableType(type.ofType) as GraphQLOutputType;
    }
    if (!isCompositeType(getNamedType(first.type))) return step + 1;
    // Once each: what fragments of fragments repeat would double with every level.
    const each = new Map(fields.map((field) => [field.selections, field]));
    below = Array.from(each.values(), ({ type, selections }) => ({
      type: getNamedType(type).name,
      selections,
    }));
  }
  return path.length;
}

/** Some selections, and the name of the type that they are of. */
interface Below {
  readonly type: string;
  readonly selections: readonly SelectionNode[];
}

interface Found {
  /** Not null, as far as the outside of it goes. */
  readonly type: GraphQLOutputType;
  readonly selections: readonly SelectionNode[];
}

interface Context {
  readonly schema: GraphQLSchema;
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  /** Fragments that were looked into. */
  readonly spread: Set<string>;
}

function fieldsAt(key: string | number, { type, selections }: Below, context: Context): Found[] {
  const parent = context.schema.getType(type);
  return selections.flatMap((selection) => {
    if (selection.kind !== Kind.FIELD) {
      const fragment = fragmentOf(selection, context);
      if (!fragment) return [];
      const { typeCondition, selectionSet } = fragment;
      const inner = typeCondition?.name.value ?? type;
      return fieldsAt(key, { type: inner, selections: selectionSet.selections }, context);
    }
    const { alias, name, selectionSet } = selection;
    if ((alias ?? name).value !== key) return [];
    const field =
      isObjectType(parent) || isInterfaceType(parent) ? parent.getFields()[name.value] : undefined;
    if (!field) return [];
    return [{ type: getNullableType(field.type), selections: selectionSet?.selections ?? [] }];
  });
}

function fragmentOf(
  selection: InlineFragmentNode | FragmentSpreadNode,
  { fragments, spread }: Context,
): InlineFragmentNode | FragmentDefinitionNode | undefined {
  if (selection.kind === Kind.INLINE_FRAGMENT) return selection;
  const name = selection.name.value;
  if (spread.has(name)) return undefined;
  spread.add(name);
  return fragments.get(name);
}
