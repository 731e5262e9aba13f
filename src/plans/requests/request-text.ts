import {
  getNamedType,
  isAbstractType,
  Kind,
  print,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type ASTNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionNode,
  type VariableDefinitionNode,
} from 'graphql';
import { INLINED_PAGE, type Path, type UpstreamError } from '../../answers/errors.ts';
import { TYPE_KEY } from '../../answers/shape.ts';
import type { Json } from '../../json.ts';
import { asksForIncremental, isIncremental } from '../../schema/incremental-directives.ts';
import type { Asking, CallVariables, UpstreamRequest } from '../call.ts';

/** A request of the service, written once for an operation; what differs from call to call are variables. */
export interface RequestText {
  /** The field of the root that it asks for, the first of several. */
  readonly field: string;
  /** @param own the variables that the gateway adds, as JSON */
  body(variables: CallVariables, own?: OwnVariables): string;
  /** What else tells how the answer is read, where the body does not. */
  key(variables: CallVariables): string;
  /** The same for all that ask the service for the same, whatever the gateway's own variables are. */
  name(variables: CallVariables): string;
  /** What it costs in pages. */
  pages(variables: CallVariables, own?: Readonly<Record<string, unknown>>): number;
}

export type OwnVariables = Readonly<Record<string, string>>;

/** Which pages are inlined: all, all but those under these keys, or `safe`: only those that may be null. */
export type WantedPages = 'all' | 'safe' | ReadonlySet<string>;

export interface RequestWriter {
  /** The upstream's schema under served names. */
  readonly schema: GraphQLSchema;
  /** Puts a document back into the upstream's names. */
  readonly toUpstream: (document: DocumentNode) => DocumentNode;
  /** Writes the first pages of nested lists in place of what is derived of them. */
  readonly inlinePages: (document: DocumentNode, wanted: WantedPages) => DocumentNode;
  /** Whether the answer is read in parts where `@defer` stands, which is not sent. */
  readonly defers: boolean;
  readonly onWritten: (characters: number) => void;
  readonly price: (
    document: DocumentNode,
  ) => (variables: Readonly<Record<string, unknown>>) => number;
}

export interface WrittenOperation extends Pick<
  OperationDefinitionNode,
  'operation' | 'name' | 'directives'
> {
  readonly variableDefinitions: readonly VariableDefinitionNode[];
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
}

/**
 * Writes a request from selections of the root. The caller's operation goes along with its name, its directives and
 * its variables; fragments that are not reached and variables that are not used are left out, since a service may
 * refuse them. Its description is left out too: older parsers do not know such a thing.
 */
export function writeRequest(
  writer: RequestWriter,
  { operation, name, directives, variableDefinitions, fragments }: WrittenOperation,
  selections: readonly SelectionNode[],
  wanted: WantedPages,
): RequestText {
  const whole: OperationDefinitionNode = {
    kind: Kind.OPERATION_DEFINITION,
    operation,
    ...(name && { name }),
    directives: directives ?? [],
    variableDefinitions,
    selectionSet: { kind: Kind.SELECTION_SET, selections },
  };
  const asked = onlyReached(whole, fragments);
  const inlined = writer.inlinePages(asked, wanted);
  const again = inlined === asked ? asked : reachedOf(inlined);
  const typed = withTypes(again, writer.schema);
  const used = variablesOf(typed);
  const document = writer.toUpstream(onlyDefined(typed, used));
  const open = `{"query":${JSON.stringify(print(document))}${name ? `,"operationName":${JSON.stringify(name.value)}` : ''},"variables":{`;
  writer.onWritten(open.length);
  const cost = writer.price(document);
  // Two derived fields can be written as the same page: what is filled in differs. What is put off is not sent.
  const unsent =
    inlined !== asked || (writer.defers && asksForIncremental(asked, NONE)) ? print(asked) : '';
  const ofUnsent = unsent === '' ? used : variablesOf(asked);
  const key = (variables: CallVariables) =>
    unsent === '' ? '' : `${unsent}${members(ofUnsent, variables, NONE)}`;
  return {
    field: fieldOf(document),
    body: (variables, own = NONE) => `${open}${members(used, variables, own)}}}`,
    key,
    name: (variables) => `${open}${members(used, variables, NONE)}${key(variables)}`,
    pages: ({ values }, own = NONE) => cost({ ...values, ...own }),
  };
}

const NONE = {};

/** The values of these variables, as members of an object of JSON. */
function members(names: Iterable<string>, { text }: CallVariables, own: OwnVariables): string {
  let written = '';
  for (const variable of names) {
    const value = Object.hasOwn(own, variable) ? own[variable] : text(variable);
    if (value === undefined) continue;
    written += `${written === '' ? '' : ','}${JSON.stringify(variable)}:${value}`;
  }
  return written;
}

function reachedOf({ definitions }: DocumentNode): DocumentNode {
  const fragments = new Map<string, FragmentDefinitionNode>();
  let operation: OperationDefinitionNode | undefined;
  for (const definition of definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION)
      fragments.set(definition.name.value, definition);
    else if (definition.kind === Kind.OPERATION_DEFINITION) operation = definition;
  }
  return onlyReached(operation!, fragments);
}

function onlyReached(
  operation: OperationDefinitionNode,
  fragments: WrittenOperation['fragments'],
): DocumentNode {
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
 * Where a type is abstract, the gateway has to know which one a value has, before it reads anything else of it. What
 * comes later is between the caller and us.
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

const TYPE: FieldNode = {
  kind: Kind.FIELD,
  alias: { kind: Kind.NAME, value: TYPE_KEY },
  name: { kind: Kind.NAME, value: '__typename' },
};

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

function fieldOf({ definitions }: DocumentNode): string {
  for (const definition of definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
    const [selection] = definition.selectionSet.selections;
    if (selection?.kind === Kind.FIELD) return selection.name.value;
  }
  return '';
}

/** A field with selections of its own, as the gateway adds it. */
export function field(
  name: string,
  { selections, alias }: { selections?: readonly SelectionNode[]; alias?: string | undefined } = {},
): FieldNode {
  return {
    kind: Kind.FIELD,
    name: { kind: Kind.NAME, value: name },
    ...(alias !== undefined && alias !== name && { alias: { kind: Kind.NAME, value: alias } }),
    ...(selections && { selectionSet: { kind: Kind.SELECTION_SET, selections } }),
  };
}

/** A caller may want nothing of the records, and a selection may not be empty. */
export function notEmpty(selections: readonly SelectionNode[]): readonly SelectionNode[] {
  return selections.length > 0 ? selections : [field('__typename', { alias: '_rsEmpty' })];
}

interface Answer {
  /** The keys of inlined pages whose failure also nulled their parent. */
  readonly takenAlong: ReadonlySet<string>;
}

export const NOBODY: ReadonlySet<string> = new Set();

/**
 * Asks again without the inlined pages whose failure also nulled their parent, as it does where the list's own type
 * may not be null: what is derived of it may be, so its parent must not go with it.
 */
export async function askSparingParents<T extends Answer>(
  asking: Pick<Asking, 'ask'>,
  write: (wanted: WantedPages) => UpstreamRequest<T>,
): Promise<T> {
  let answer = await asking.ask(write('all'));
  if (answer.takenAlong.size > 0) answer = await asking.ask(write(answer.takenAlong));
  // The first failures may have hidden others.
  if (answer.takenAlong.size > 0) answer = await asking.ask(write('safe'));
  return answer;
}

export function parentsTakenAlong(
  data: Json | undefined,
  errors: readonly UpstreamError[],
): ReadonlySet<string> {
  const taken = errors.flatMap(({ path = [] }) => {
    const last = path.findLastIndex((step) => INLINED_PAGE.test(String(step)));
    if (last < 0) return [];
    const parent = valueAt(data, path.slice(0, last));
    return !parent || parent.isNull ? [String(path[last])] : [];
  });
  return taken.length > 0 ? new Set(taken) : NOBODY;
}

function valueAt(data: Json | undefined, path: Path): Json | undefined {
  let value = data;
  for (const step of path)
    value = typeof step === 'number' ? value?.values[step] : value?.get(step);
  return value;
}
