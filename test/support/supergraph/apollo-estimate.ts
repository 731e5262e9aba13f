import {
  getNamedType,
  getNullableType,
  isCompositeType,
  isListType,
  Kind,
  valueFromASTUntyped,
  type ConstDirectiveNode,
  type DocumentNode,
  type FieldNode,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  type SelectionSetNode,
} from 'graphql';
import { defaultOf } from '../../../src/schema/derived.ts';

type Variables = Readonly<Record<string, unknown>>;

interface ListSize {
  readonly assumedSize?: number;
  readonly slicingArguments?: readonly string[];
  readonly sizedFields?: readonly string[];
  readonly requireOneSlicingArgument?: boolean;
}

/**
 * The cost that Apollo Router estimates, by its published rules (Demand Control, `static_estimated`): a field costs its
 * own weight, or else that of its type, or else 1 if it has fields below it, plus what is selected below it; all of
 * this times the length of its list; plus its arguments. No npm package has that router.
 *
 * @param schema of the subgraph, to which an operation of root fields of one subgraph is sent whole
 * @param listSize the length of a list that has no `@listSize`
 */
export function apolloEstimate(
  schema: GraphQLSchema,
  document: DocumentNode,
  { variables = {}, listSize = 10 }: { variables?: Variables; listSize?: number } = {},
): number {
  const operation = document.definitions.find(
    (definition) => definition.kind === Kind.OPERATION_DEFINITION,
  )!;
  return ofSelections(operation.selectionSet, schema.getQueryType()!, undefined);

  function ofSelections(
    { selections }: SelectionSetNode,
    type: GraphQLNamedType,
    above: { fields: readonly string[]; length: number | undefined } | undefined,
  ): number {
    return selections.reduce((sum, selection) => {
      if (selection.kind === Kind.FIELD) {
        const length = above?.fields.includes(selection.name.value) ? above.length : undefined;
        return sum + ofField(selection, type, length);
      }
      const fragment =
        selection.kind === Kind.INLINE_FRAGMENT
          ? selection
          : document.definitions.find(
              (each) =>
                each.kind === Kind.FRAGMENT_DEFINITION && each.name.value === selection.name.value,
            );
      if (!fragment || !('selectionSet' in fragment)) throw new Error('There is no such fragment.');
      const on = 'typeCondition' in fragment && fragment.typeCondition?.name.value;
      return sum + ofSelections(fragment.selectionSet, on ? schema.getType(on)! : type, above);
    }, 0);
  }

  function ofField(
    node: FieldNode,
    parent: GraphQLNamedType,
    givenSize: number | undefined,
  ): number {
    const field = 'getFields' in parent && parent.getFields()[node.name.value];
    if (!field || !('args' in field)) return 0; // __typename
    const type = getNamedType(field.type);
    const size = argumentsOf(field.astNode?.directives, 'listSize') as ListSize | undefined;
    const expected = size && expectedLength(size, node, field);
    const isList = isListType(getNullableType(field.type));
    const length = isList ? (givenSize ?? expected ?? listSize) : 1;
    const weight =
      weightOf(field.astNode?.directives) ??
      weightOf(type.astNode?.directives) ??
      (isCompositeType(type) ? 1 : 0);
    const below = node.selectionSet
      ? ofSelections(node.selectionSet, type, { fields: size?.sizedFields ?? [], length: expected })
      : 0;
    return length * (weight + below);
  }

  function expectedLength(
    { slicingArguments = [], assumedSize, requireOneSlicingArgument = true }: ListSize,
    node: FieldNode,
    field: GraphQLField<unknown, unknown>,
  ): number | undefined {
    const sizes = slicingArguments.flatMap((name) => {
      const argument = node.arguments?.find((each) => each.name.value === name);
      const definition = field.args.find((each) => each.name === name);
      const value = argument
        ? valueFromASTUntyped(argument.value, variables)
        : definition && defaultOf(definition);
      return typeof value === 'number' ? value : [];
    });
    if (slicingArguments.length > 0 && requireOneSlicingArgument && sizes.length !== 1) {
      throw new Error(`Exactly one slicing argument is required, but found ${sizes.length}.`);
    }
    return sizes.length > 0 ? Math.max(...sizes) : assumedSize;
  }
}

function weightOf(directives: readonly ConstDirectiveNode[] | undefined): number | undefined {
  return argumentsOf(directives, 'cost')?.['weight'] as number | undefined;
}

function argumentsOf(
  directives: readonly ConstDirectiveNode[] | undefined,
  name: string,
): Record<string, unknown> | undefined {
  const directive = directives?.find((each) => each.name.value === name);
  if (!directive) return undefined;
  const args = directive.arguments ?? [];
  return Object.fromEntries(args.map((each) => [each.name.value, valueFromASTUntyped(each.value)]));
}
