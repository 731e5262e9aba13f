import {
  getNamedType,
  getNullableType,
  getOperationAST,
  isCompositeType,
  isInterfaceType,
  isListType,
  isObjectType,
  isUnionType,
  Kind,
  OperationTypeNode,
  valueFromASTUntyped,
  type DocumentNode,
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { ASSUMED_LIST_LENGTH } from '../../answers/shape.ts';
import {
  conditionalSelections,
  createConditions,
  type Condition,
  type ConditionalSelections,
  type Holds,
} from './conditional-selections.ts';

/**
 * Computes the cost of a document in pages of the upstream, 50 records each (interface, section 8). Each list at the
 * root costs whole pages; a list below other records counts once for each of them. At least 1.
 */
export type PageCost = (document: DocumentNode) => (variables: Variables) => number;

type Variables = Readonly<Record<string, unknown>>;

const PAGE = 50;

type Field = GraphQLField<unknown, unknown>;

/**
 * Visits each document once. What remains for each call is to evaluate the variables that the cost depends on.
 *
 * @param schema the upstream's own
 */
export function pageCost(schema: GraphQLSchema): PageCost {
  const compiled = new WeakMap<DocumentNode, (variables: Variables) => number>();
  return (document) => {
    const known = compiled.get(document) ?? compile(schema, document);
    compiled.set(document, known);
    return known;
  };
}

/** A list, or a field with lists below it. Fields without a list below them have no part. */
interface Part {
  readonly condition: Condition;
  /** The largest number of records for each parent. */
  readonly most: number;
  /** Their number for given variables; undefined where it is always `most`. */
  readonly exact: SizeOf | undefined;
  readonly isCounted: boolean;
  readonly parts: readonly Part[];
}

type SizeOf = (variables: Variables) => number;

function compile(schema: GraphQLSchema, document: DocumentNode): (variables: Variables) => number {
  const operation = getOperationAST(document);
  const isMutation = operation?.operation === OperationTypeNode.MUTATION;
  const root = isMutation ? schema.getMutationType() : schema.getQueryType();
  if (!operation || !root) return () => 1;
  const conditions = createConditions();
  const { always } = conditions;
  const fields = conditionalSelections({ schema, document, conditions });
  const parts = partsOf(
    [{ condition: always, selections: operation.selectionSet.selections }],
    root,
  );
  const isAlways = conditions.decide(() => false);
  const most = pagesOf(parts, { holds: () => true });
  if (most === 1 || !parts.some(isVariable)) {
    const pages = pagesOf(parts, { holds: isAlways });
    return () => pages;
  }
  const defaults = defaultsOf(operation);
  return (given) => {
    const variables = { ...defaults, ...given };
    // The upstream refuses a request without a variable that it needs.
    const holds = conditions.decide(({ variable, value }) => variables[variable] !== !value);
    return pagesOf(parts, { holds, variables });
  };

  function partsOf(selections: ConditionalSelections, type: GraphQLCompositeType): Part[] {
    return fields(selections, type).flatMap(({ on, node, condition, below }): Part[] => {
      const field = isUnionType(on) ? undefined : on.getFields()[node.name.value];
      const of = field && getNamedType(field.type);
      if (!field || !isCompositeType(of)) return [];
      const isOfPages = isPage(field);
      const isPlain = isPlainList(field, on);
      const inner = partsOf(below, of);
      const isCounted = isOfPages || isPlain;
      if (!isCounted && inner.length === 0) return [];
      const times = isPlain ? ASSUMED_LIST_LENGTH : 1;
      const size = isOfPages ? sizeOf(field, node) : 1;
      return typeof size === 'number'
        ? [{ condition, most: size * times, exact: undefined, isCounted, parts: inner }]
        : [
            {
              condition,
              most: PAGE * times,
              exact: (by) => size(by) * times,
              isCounted,
              parts: inner,
            },
          ];
    });
  }

  function isVariable({ condition, exact, parts: inner }: Part): boolean {
    return !isAlways(condition) || exact !== undefined || inner.some(isVariable);
  }
}

function defaultsOf({ variableDefinitions = [] }: OperationDefinitionNode): Variables {
  return Object.fromEntries(
    variableDefinitions.flatMap(({ variable, defaultValue }) =>
      defaultValue ? [[variable.name.value, valueFromASTUntyped(defaultValue)]] : [],
    ),
  );
}

interface PartsSize {
  readonly holds: Holds;
  readonly variables?: Variables;
}

/** Lists at the root do not share pages, even in one request. */
function pagesOf(root: readonly Part[], by: PartsSize): number {
  const [lists, others] = [
    root.filter(({ isCounted }) => isCounted),
    root.filter(({ isCounted }) => !isCounted),
  ];
  const wholePages = lists.reduce((sum, list) => sum + Math.ceil(recordsOf([list], by) / PAGE), 0);
  return Math.max(1, wholePages + Math.ceil(recordsOf(others, by) / PAGE));
}

/** The number of records for one parent; without variables the largest possible one. */
function recordsOf(parts: readonly Part[], by: PartsSize): number {
  let sum = 0;
  for (const { condition, most, exact, isCounted, parts: inner } of parts) {
    if (!by.holds(condition)) continue;
    const many = exact && by.variables ? exact(by.variables) : most;
    sum += many * ((isCounted ? 1 : 0) + recordsOf(inner, by));
  }
  return sum;
}

/** Goes by the type alone: a list that cannot be drained, for example because its cursors are numbers, costs the same. */
function isPage({ type }: Field): boolean {
  const inner = getNamedType(type);
  if (!isObjectType(inner) && !isInterfaceType(inner)) return false;
  const { items, pageInfo } = inner.getFields();
  return items !== undefined && pageInfo !== undefined;
}

/** The `items` of a page are counted with the page. */
function isPlainList(field: Field, on: GraphQLCompositeType): boolean {
  const isItems = field.name === 'items' && !isUnionType(on) && 'pageInfo' in on.getFields();
  return isListType(getNullableType(field.type)) && !isItems;
}

/** The largest page if `first` has an unexpected form: the upstream refuses what it does not accept. */
function sizeOf({ args }: Field, node: FieldNode): number | SizeOf {
  const byDefault = within(args.find(({ name }) => name === 'first')?.defaultValue);
  const given = node.arguments?.find(({ name }) => name.value === 'first')?.value;
  if (given?.kind === Kind.VARIABLE) {
    const name = given.name.value;
    return (variables) => (variables[name] === undefined ? byDefault : within(variables[name]));
  }
  if (given === undefined) return byDefault;
  return given.kind === Kind.INT ? within(Number(given.value)) : PAGE;
}

function within(first: unknown): number {
  return typeof first === 'number' ? Math.min(Math.max(first, 1), PAGE) : PAGE;
}
