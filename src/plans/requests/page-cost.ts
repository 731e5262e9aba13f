import {
  getNamedType,
  getNullableType,
  getOperationAST,
  isCompositeType,
  isListType,
  isUnionType,
  Kind,
  type DocumentNode,
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLSchema,
  type SelectionNode,
} from 'graphql';
import { isIncluded, type SelectionScope } from '../../answers/collect-fields.ts';
import { ASSUMED_LIST_LENGTH } from '../../answers/shape.ts';
import { defaultOf, LARGEST_PAGE, mayBePage } from '../../schema/derived.ts';
import { fragmentsOf, walkFields, type FieldWalk } from '../../selections.ts';

/**
 * Returns the cost of a document in pages of the upstream, 50 records each (interface, section 8), for the values of its
 * variables. Each list at the root costs whole pages; a list below other records counts once for each of them. At
 * least 1.
 *
 * The document is visited once. What remains for each call is to insert the page sizes that are variables.
 *
 * @param schema the upstream's own
 * @param condition the values of the variables of `@skip` and `@include`, which the variant has decided
 */
export function pageCost(
  schema: GraphQLSchema,
  document: DocumentNode,
  condition: SelectionScope['condition'],
): (variables: Variables) => number {
  const operation = getOperationAST(document)!;
  const fragments = fragmentsOf(document);
  const isSent = ({ directives }: SelectionNode) => isIncluded({ condition }, directives);
  const parts = partsOf(
    operation.selectionSet.selections,
    schema.getRootType(operation.operation)!,
  );
  const most = pagesOf(parts);
  return most === 1 || !parts.some(isVariable)
    ? () => most
    : (variables) => pagesOf(parts, variables);

  function partsOf(selections: readonly SelectionNode[], type: GraphQLCompositeType): Part[] {
    return selectedOf(selections, type).flatMap(({ on, node, below }): Part[] => {
      const field = isUnionType(on) ? undefined : on.getFields()[node.name.value];
      const of = field && getNamedType(field.type);
      if (!field || !isCompositeType(of)) return [];
      // By the type alone: a list that cannot be drained, for example because its cursors are numbers, costs the same.
      const isOfPages = mayBePage(schema, of);
      const isPlain = isPlainList(field, on);
      const inner = partsOf(below, of);
      if (!isOfPages && !isPlain && inner.length === 0) return [];
      return [
        {
          times: isPlain ? ASSUMED_LIST_LENGTH : 1,
          size: isOfPages ? sizeOf(field, node) : 1,
          isCounted: isOfPages || isPlain,
          parts: inner,
        },
      ];
    });
  }

  /** Merges the fields of one response name, for all types that the object may have. */
  function selectedOf(
    selections: readonly SelectionNode[],
    type: GraphQLCompositeType,
  ): Selected[] {
    const fields = new Map<string, Selected>();
    const walk: FieldWalk<GraphQLCompositeType> = {
      fragments,
      enter: (selection, { typeCondition }, on) => {
        const narrowed = typeCondition && schema.getType(typeCondition.name.value);
        if (!isSent(selection)) return undefined;
        return isCompositeType(narrowed) ? narrowed : on;
      },
      field: (node, on) => {
        if (!isSent(node)) return;
        const key = `${on.name} ${(node.alias ?? node.name).value}`;
        const field = fields.get(key) ?? { on, node, below: [] };
        fields.set(key, field);
        field.below.push(...(node.selectionSet?.selections ?? []));
      },
    };
    walkFields(selections, type, walk);
    return [...fields.values()];
  }
}

type Variables = Readonly<Record<string, unknown>>;

type Field = GraphQLField<unknown, unknown>;

interface Selected {
  /** The type that the field is selected on: within an abstract type it may be one of the possible types. */
  readonly on: GraphQLCompositeType;
  /** The first field: all have the same arguments. */
  readonly node: FieldNode;
  readonly below: SelectionNode[];
}

/** A list, or a field with lists below it. Fields without a list below them have no part. */
interface Part {
  /** How many lists there are for each parent. */
  readonly times: number;
  /** Records of one list. */
  readonly size: number | ((variables: Variables) => number);
  readonly isCounted: boolean;
  readonly parts: readonly Part[];
}

function isVariable({ size, parts }: Part): boolean {
  return typeof size === 'function' || parts.some(isVariable);
}

/** Lists at the root do not share pages, even in one request. @param variables undefined: the largest cost */
function pagesOf(root: readonly Part[], variables?: Variables): number {
  const lists = root.filter(({ isCounted }) => isCounted);
  const others = root.filter(({ isCounted }) => !isCounted);
  const wholePages = lists.reduce((sum, list) => sum + pagesFor([list]), 0);
  return Math.max(1, wholePages + pagesFor(others));

  function pagesFor(parts: readonly Part[]): number {
    return Math.ceil(recordsOf(parts, variables) / LARGEST_PAGE);
  }
}

/** The number of records for one parent. */
function recordsOf(parts: readonly Part[], variables: Variables | undefined): number {
  let sum = 0;
  for (const { times, size, isCounted, parts: inner } of parts) {
    const records = typeof size === 'number' ? size : variables ? size(variables) : LARGEST_PAGE;
    sum += times * records * ((isCounted ? 1 : 0) + recordsOf(inner, variables));
  }
  return sum;
}

/** The `items` of a page are counted with the page. */
function isPlainList(field: Field, on: GraphQLCompositeType): boolean {
  const isItems = field.name === 'items' && !isUnionType(on) && 'pageInfo' in on.getFields();
  return isListType(getNullableType(field.type)) && !isItems;
}

/** The largest page if `first` has an unexpected form: the upstream refuses what it does not accept. */
function sizeOf({ args }: Field, node: FieldNode): Part['size'] {
  const first = args.find(({ name }) => name === 'first');
  const byDefault = within(first && defaultOf(first));
  const value = node.arguments?.find(({ name }) => name.value === 'first')?.value;
  if (value?.kind === Kind.VARIABLE) {
    const name = value.name.value;
    return (variables) => (variables[name] === undefined ? byDefault : within(variables[name]));
  }
  if (value === undefined) return byDefault;
  return value.kind === Kind.INT ? within(Number(value.value)) : LARGEST_PAGE;
}

function within(first: unknown): number {
  return typeof first === 'number' ? Math.min(Math.max(first, 1), LARGEST_PAGE) : LARGEST_PAGE;
}
