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
import {
  conditionalSelections,
  createConditions,
  type Condition,
  type ConditionalSelections,
  type Holds,
} from './conditional-selections.ts';

/**
 * What a document costs in pages of the upstream, 50 records each (interface, section 8): each list of the root costs
 * whole pages, and a list below other records counts once for each of them. At least 1.
 */
export type PagePrice = (document: DocumentNode) => (variables: Variables) => number;

type Variables = Readonly<Record<string, unknown>>;

const PAGE = 50;
/** Of a list that is not in pages nobody knows how long it is. */
const PLAIN_LIST = 10;

type Field = GraphQLField<unknown, unknown>;

/**
 * Walks a document once; what is left for each call are the variables that decide something.
 *
 * @param schema the upstream's own
 */
export function pagePrice(schema: GraphQLSchema): PagePrice {
  const compiled = new WeakMap<DocumentNode, (variables: Variables) => number>();
  return (document) => {
    const known = compiled.get(document) ?? compile(schema, document);
    compiled.set(document, known);
    return known;
  };
}

/** A list, or fields that lead to lists; what leads to none has no part. */
interface Part {
  readonly condition: Condition;
  /** How many there are for each parent: so many, or so many at most, and the exact number by variables. */
  readonly most: number;
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
    // One that is missing is refused by the upstream.
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
      const times = isPlain ? PLAIN_LIST : 1;
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

/** Several lists of the root share no page, though they are asked for in one request. */
function pagesOf(root: readonly Part[], by: PartsSize): number {
  const [lists, others] = [
    root.filter(({ isCounted }) => isCounted),
    root.filter(({ isCounted }) => !isCounted),
  ];
  const wholePages = lists.reduce((sum, list) => sum + Math.ceil(recordsOf([list], by) / PAGE), 0);
  return Math.max(1, wholePages + Math.ceil(recordsOf(others, by) / PAGE));
}

/** What they bring for one parent; without variables the most. */
function recordsOf(parts: readonly Part[], by: PartsSize): number {
  let sum = 0;
  for (const { condition, most, exact, isCounted, parts: inner } of parts) {
    if (!by.holds(condition)) continue;
    const many = exact && by.variables ? exact(by.variables) : most;
    sum += many * ((isCounted ? 1 : 0) + recordsOf(inner, by));
  }
  return sum;
}

/**
 * By its type alone: what is too odd to be drained, such as a list whose cursors are numbers, costs the same.
 */
function isPage({ type }: Field): boolean {
  const inner = getNamedType(type);
  if (!isObjectType(inner) && !isInterfaceType(inner)) return false;
  const { items, pageInfo } = inner.getFields();
  return items !== undefined && pageInfo !== undefined;
}

/** `items` of a page are counted with the page. */
function isPlainList(field: Field, on: GraphQLCompositeType): boolean {
  const isItems = field.name === 'items' && !isUnionType(on) && 'pageInfo' in on.getFields();
  return isListType(getNullableType(field.type)) && !isItems;
}

/** Without a `first` that can be read, the largest: what does not suit the upstream is refused there. */
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
