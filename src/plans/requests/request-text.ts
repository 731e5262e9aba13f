import { hash } from 'node:crypto';
import {
  BREAK,
  getNamedType,
  getNullableType,
  getOperationAST,
  isAbstractType,
  isCompositeType,
  isListType,
  isUnionType,
  Kind,
  print,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type ArgumentNode,
  type ASTNode,
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLSchema,
  type InlineFragmentNode,
  type OperationDefinitionNode,
  type SelectionNode,
  type ValueNode,
  type VariableDefinitionNode,
} from 'graphql';
import { astFromType } from '@graphql-tools/utils';
import {
  conditionOf,
  deferOf,
  isIncluded,
  type SelectionScope,
} from '../../answers/collect-fields.ts';
import { ASSUMED_LIST_LENGTH, TYPE_KEY, type ShapeScope } from '../../answers/shape.ts';
import { LARGEST_PAGE, mayBePage } from '../../schema/derived.ts';
import { isIncremental } from '../../schema/incremental-directives.ts';
import {
  fieldsIn,
  fragmentsOf,
  walkFields,
  type FieldWalk,
  type Fragments,
} from '../../selections.ts';
import type { CallVariables } from '../call.ts';

/** A request to the service, written once for an operation. Only its variables differ from call to call. */
export interface RequestText {
  /** The root field that it selects; the first one of several. */
  readonly field: string;
  /** @param added the values of the variables that the gateway adds, as JSON */
  body(variables: CallVariables, added?: AddedVariables): string;
  /** Names how the answer is read, where the body does not say it: see `whatIsRead`. Mostly empty. */
  key(variables: CallVariables): string;
  /** Equal for requests that differ only in the variables that the gateway adds, such as two pages of a list. */
  name(variables: CallVariables): string;
  /** Names what is selected, whatever the names of the operation and the values of its variables. */
  selection(): string;
  /** Whether it has first pages of nested lists. */
  readonly hasInlinedPages: boolean;
  /** Cost in pages. */
  pages(variables: CallVariables, added?: Readonly<Record<string, unknown>>): number;
}

type AddedVariables = Readonly<Record<string, string>>;

/**
 * All first pages of nested lists, or none; all but those with these keys; or `safe`: only those whose type may be null.
 */
export type PagesToInline = 'all' | 'none' | 'safe' | ReadonlySet<string>;

export interface RequestWriter {
  /** The upstream's schema under served names. */
  readonly schema: GraphQLSchema;
  /** Replaces served names by the upstream's names. */
  readonly toUpstream: (document: DocumentNode) => DocumentNode;
  /** Replaces derived fields of nested lists by the first pages of these lists. */
  readonly inlinePages: (document: DocumentNode, pages: PagesToInline) => DocumentNode;
  /** Called for a request that is kept: one with all inlined pages. */
  readonly onWritten: (characters: number) => void;
  /** Returns the cost in pages for the values of the variables. */
  readonly cost: (
    document: DocumentNode,
  ) => (variables: Readonly<Record<string, unknown>>) => number;
}

export interface WrittenOperation extends Pick<
  OperationDefinitionNode,
  'operation' | 'name' | 'directives'
> {
  readonly variableDefinitions: readonly VariableDefinitionNode[];
  readonly fragments: Fragments;
}

/**
 * Writes a request that selects these root fields. It keeps the name, the directives and the variables of the caller's
 * operation. Fragments and variables that are not used are left out, since a service may refuse them; so are
 * descriptions, which older parsers do not accept.
 *
 * @param scope the one that the shapes of the answer are made in
 */
export function writeRequest(
  writer: RequestWriter,
  { operation, name, directives, variableDefinitions, fragments }: WrittenOperation,
  selections: readonly SelectionNode[],
  pages: PagesToInline,
  scope: ShapeScope,
): RequestText {
  const whole: OperationDefinitionNode = {
    kind: Kind.OPERATION_DEFINITION,
    operation,
    ...(name && { name }),
    directives: directives ?? [],
    variableDefinitions,
    selectionSet: { kind: Kind.SELECTION_SET, selections },
  };
  const selected = onlyReached(whole, fragments);
  const rewritten = writer.inlinePages(selected, pages);
  const reached =
    rewritten === selected
      ? selected
      : onlyReached(getOperationAST(rewritten)!, fragmentsOf(rewritten));
  const typed = withTypes(reached, writer.schema);
  const used = variablesOf(typed);
  const document = writer.toUpstream(onlyDefined(typed, used));
  const open = `{"query":${JSON.stringify(print(document))}${name ? `,"operationName":${JSON.stringify(name.value)}` : ''},"variables":{`;
  if (pages === 'all') writer.onWritten(open.length);
  const cost = writer.cost(document);
  const isAsSent = rewritten === selected && isReadAsSent(selected, scope);
  let selection: string | undefined;
  const key = isAsSent ? () => '' : keyOf(whatIsRead(selected, scope));
  return {
    field: firstField(document),
    body: (variables, added = NONE) => `${open}${members(used, variables, added)}}}`,
    key,
    selection: () => (selection ??= hash('sha256', withoutName(open, name?.value), 'base64')),
    hasInlinedPages: rewritten !== selected,
    name: (variables) => `${open}${members(used, variables, NONE)}${key(variables)}`,
    pages: ({ values }, added = NONE) => cost({ ...values, ...added }),
  };
}

const NONE = {};

/** The root field that an operation selects, the first of several. */
function firstField(document: DocumentNode): string {
  const selections = getOperationAST(document)?.selectionSet.selections ?? [];
  const [field] = fieldsIn(selections, fragmentsOf(document));
  return field?.name.value ?? '';
}

function withoutName(open: string, name: string | undefined): string {
  if (name === undefined) return open;
  return open
    .replace(`{"query":"query ${name}`, '{"query":"query ')
    .replace(`,"operationName":${JSON.stringify(name)}`, '');
}

function keyOf(read: DocumentNode): RequestText['key'] {
  const digest = hash('sha256', print(read), 'base64');
  const used = variablesOf(read);
  return (variables) => `${digest}${members(used, variables, NONE)}`;
}

/** Writes the values of these variables as members of a JSON object. */
function members(names: Iterable<string>, variables: CallVariables, added: AddedVariables): string {
  let written = '';
  for (const variable of names) {
    const value = Object.hasOwn(added, variable) ? added[variable] : variables.text(variable);
    if (value === undefined) continue;
    written += `${written === '' ? '' : ','}${JSON.stringify(variable)}:${value}`;
  }
  return written;
}

function onlyReached(operation: OperationDefinitionNode, fragments: Fragments): DocumentNode {
  const reached = new Map<string, FragmentDefinitionNode>();
  const reach = (node: ASTNode) => {
    visit(node, {
      FragmentSpread: ({ name: { value } }) => {
        const fragment = fragments.get(value);
        if (!fragment || reached.has(value)) return;
        reached.set(value, fragment);
        reach(fragment);
      },
    });
  };
  reach(operation);
  return { kind: Kind.DOCUMENT, definitions: [operation, ...reached.values()] };
}

/**
 * Selects `__typename` first wherever a type is abstract: the gateway has to know the type of a value before it reads
 * the rest. Removes `@defer` and `@stream`, which only the gateway implements.
 */
function withTypes(document: DocumentNode, schema: GraphQLSchema): DocumentNode {
  const types = new TypeInfo(schema);
  return visit(
    document,
    visitWithTypeInfo(types, {
      Field: (node) => {
        const type = types.getType();
        if (!node.selectionSet || !type || !isAbstractType(getNamedType(type))) return undefined;
        const selections = [TYPE, ...node.selectionSet.selections];
        return { ...node, selectionSet: { ...node.selectionSet, selections } };
      },
      Directive: (node) => (isIncremental(node) ? null : undefined),
      FragmentDefinition: withoutDescription,
      VariableDefinition: withoutDescription,
    }),
  );
}

function withoutDescription<Node extends ASTNode>(node: Node): Node | undefined {
  return 'description' in node ? { ...node, description: undefined } : undefined;
}

const TYPE = fieldNode('__typename', { alias: TYPE_KEY });

function variablesOf(document: DocumentNode): Set<string> {
  const used = new Set<string>();
  visit(document, {
    VariableDefinition: () => false,
    Variable: ({ name }) => void used.add(name.value),
  });
  return used;
}

function onlyDefined(document: DocumentNode, used: ReadonlySet<string>): DocumentNode {
  return visit(document, {
    VariableDefinition: (node) => (used.has(node.variable.name.value) ? false : null),
  });
}

/*
 * Callers who send the same request at the same time share its answer as it was read for one of them. Two requests can
 * have the same body and still be read in different ways: derived fields of nested lists are sent as the same page. The key of a request therefore has what is read, too.
 */

/**
 * Whether what is sent says how its answer is read: none of it is deferred, and no condition that is not sent is null.
 *
 * @param sent the caller's own selections, not rewritten
 */
function isReadAsSent(sent: DocumentNode, scope: ShapeScope): boolean {
  let isUnsent = false;
  visit(sent, {
    Directive: (node) => {
      isUnsent = deferOf(scope, [node]) !== undefined || isRefused(scope, node);
      return isUnsent ? BREAK : undefined;
    },
  });
  return !isUnsent;
}

/**
 * Returns what is read of an answer: the selections with all conditions decided, from which the shapes of this scope
 * are made. Equal texts, with equal values of their variables, mean equal readings.
 *
 * @param selected by the caller, before anything is rewritten for the service
 */
function whatIsRead(selected: DocumentNode, scope: ShapeScope): DocumentNode {
  const {
    // The same for all operations.
    schema: _schema,
    upstreamType: _upstreamType,
    globalIds: _globalIds,
    // Made of what the document has.
    fragments: _fragments,
    placeholderAt: _placeholderAt,
    condition,
    defers = false,
    ...others
  } = scope;
  // A new member does not compile here: if it decides how an answer is read, the returned document has to show it.
  others satisfies Record<string, never>;
  const decided = { condition, defers };
  const left = (directive: DirectiveNode): readonly DirectiveNode[] => {
    if (isRefused(decided, directive)) return [directive];
    if (directive.name.value === 'skip' || directive.name.value === 'include') return [];
    if (!isIncremental(directive)) return [directive];
    if (!deferOf(decided, [directive])) return [];
    return [
      {
        ...directive,
        arguments: (directive.arguments ?? []).filter(({ name }) => name.value !== 'if'),
      },
    ];
  };
  const decide = <Node extends { readonly directives?: readonly DirectiveNode[] }>(node: Node) =>
    isIncluded(decided, node.directives)
      ? { ...node, directives: node.directives?.flatMap(left) }
      : null;
  return visit(selected, { Field: decide, InlineFragment: decide, FragmentSpread: decide });
}

/** Whether its condition is null. */
function isRefused(scope: Pick<ShapeScope, 'condition'>, directive: DirectiveNode): boolean {
  return conditionOf(scope, [directive], directive.name.value) === null;
}

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
  const byDefault = within(first?.defaultValue);
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

/*
 * What the gateway itself adds to a document before it sends it, as nodes of its syntax tree: fields, fragments,
 * arguments and variables. The aliases and variables that it invents begin with _rs.
 */

export function fieldNode(
  name: string,
  {
    selections,
    alias,
    args,
  }: {
    selections?: readonly SelectionNode[];
    alias?: string | undefined;
    args?: readonly ArgumentNode[];
  } = {},
): FieldNode {
  return {
    kind: Kind.FIELD,
    name: { kind: Kind.NAME, value: name },
    ...(alias !== undefined && alias !== name && { alias: { kind: Kind.NAME, value: alias } }),
    ...(args && { arguments: args }),
    ...(selections && { selectionSet: { kind: Kind.SELECTION_SET, selections } }),
  };
}

/** @param type undefined: the fragment has no type condition */
export function fragmentNode(
  type: string | undefined,
  selections: readonly SelectionNode[],
  directives: readonly DirectiveNode[] = [],
): InlineFragmentNode {
  return {
    kind: Kind.INLINE_FRAGMENT,
    ...(type !== undefined && {
      typeCondition: { kind: Kind.NAMED_TYPE, name: { kind: Kind.NAME, value: type } },
    }),
    directives,
    selectionSet: { kind: Kind.SELECTION_SET, selections },
  };
}

/** @param value the name of a variable, or a value */
export function argumentNode(name: string, value: string | ValueNode): ArgumentNode {
  return {
    kind: Kind.ARGUMENT,
    name: { kind: Kind.NAME, value: name },
    value: typeof value === 'string' ? variableNode(value) : value,
  };
}

export function variableDefinitionNode(
  name: string,
  type: GraphQLInputType,
): VariableDefinitionNode {
  return {
    kind: Kind.VARIABLE_DEFINITION,
    variable: variableNode(name),
    type: astFromType(type),
  };
}

function variableNode(name: string) {
  return { kind: Kind.VARIABLE, name: { kind: Kind.NAME, value: name } } as const;
}

/**
 * Returns the selections; `__typename` if there are none. A caller may select no field of the records, but GraphQL does
 * not allow an empty selection.
 */
export function orTypename(selections: readonly SelectionNode[]): readonly SelectionNode[] {
  return selections.length > 0 ? selections : [fieldNode('__typename', { alias: '_rsEmpty' })];
}
