import { getCoercedVariableValues } from '@graphql-tools/delegate';
import { astFromType } from '@graphql-tools/utils';
import {
  GraphQLError,
  GraphQLInt,
  getNamedType,
  getNullableType,
  isNullableType,
  isRequiredArgument,
  Kind,
  OperationTypeNode,
  type FieldNode,
  type GraphQLObjectType,
  type GraphQLResolveInfo,
  type SelectionNode,
  type TypeNode,
  type VariableDefinitionNode,
} from 'graphql';
import { codedError } from '../errors.ts';
import type { FetchPage } from '../paging/page.ts';
import { nameOf, questionFor, type UpstreamLink, type UpstreamQuestion } from './ask-upstream.ts';
import type { IdentitySelection } from './identity-selection.ts';
import type { Adapter } from './plan-adapters.ts';
import { readPage, type UpstreamRecord } from './read-page.ts';
import type { AskingContext } from './serving-context.ts';
import type { UpstreamError, UpstreamValue } from './upstream-value.ts';

export interface PageSource {
  readonly link: UpstreamLink;
  readonly adapter: Adapter;
  readonly identity: IdentitySelection;
  readonly info: GraphQLResolveInfo;
  /** Values of the carried-over arguments. */
  readonly filters: Readonly<Record<string, unknown>>;
  /**
   * What to select of each record, once for each place of the operation that shows records. The places
   * are asked for under aliases, in one request: two of them may use one name for different fields.
   */
  readonly selections: readonly (readonly SelectionNode[])[];
  /** Asks another way than at the root. */
  readonly askFor?: typeof questionFor;
  /** The first page, where it is here already. */
  readonly ridden?: RiddenPage | undefined;
}

/** A page that came along with another answer. */
export interface RiddenPage {
  readonly answer: UpstreamValue;
  /** The names of its lists of records, in the order of the selections. */
  readonly aliases: readonly string[];
}

/** What the upstream said in place of a page. */
export class PageFailure extends GraphQLError {
  override name = 'PageFailure';
  /** What else it said. */
  readonly others: readonly UpstreamError[];
  constructor([first, ...others]: readonly UpstreamError[]) {
    super(first!.message, { extensions: first!.extensions });
    this.others = others;
  }
}

/** The upstream gave null for the whole list, as its type may allow: then what is derived is null too. */
export class NullList extends Error {
  override name = 'NullList';
}

/** What the upstream said beyond the error that is thrown. */
export function surplusOf(error: unknown): readonly UpstreamError[] {
  if (error instanceof PageFailure) return error.others;
  return error instanceof Error && error.cause instanceof PageFailure ? error.cause.others : [];
}

export function nullForNullList(error: unknown): null {
  if (error instanceof NullList) return null;
  throw error;
}

/** For a list that does not let `first` be left out (interface, section 8). */
const LARGEST_DOCUMENTED_PAGE = 50;

/** What to ask for where no size is wanted; undefined: nothing, so that the upstream gives its largest page. */
export function pageSizeOf({ field: list }: Adapter): number | undefined {
  return list.args.some((arg) => arg.name === 'first' && isRequiredArgument(arg))
    ? LARGEST_DOCUMENTED_PAGE
    : undefined;
}

/** The field of its pageInfo that tells the size which was really used, where there is one. */
function sizeOf({ field: list }: Adapter): readonly string[] {
  const page = getNamedType(list.type) as GraphQLObjectType;
  const pageInfo = getNamedType(page.getFields()['pageInfo']!.type) as GraphQLObjectType;
  const first = pageInfo.getFields()['first'];
  return first && getNullableType(first.type) === GraphQLInt ? ['first'] : [];
}

/** The pages of a list, with the caller's own selection on each record. The request is made once. */
export function pageFetcher(
  source: PageSource & { context: AskingContext },
): FetchPage<UpstreamRecord> {
  const { link, adapter, identity, context, filters, askFor = questionFor } = source;
  const question = questionOf(source);
  const pageSize = pageSizeOf(adapter);
  const isNullable = {
    page: isNullableType(adapter.field.type),
    items: isNullableType(adapter.itemsType),
  };
  const ask = askFor(link, question);
  let { ridden } = source;

  return async ({ first, after }, signal) => {
    // A variable that is left out leaves its argument out, so the upstream's own default applies.
    const size = first ?? pageSize;
    const paging = { ...(size !== undefined && { first: size }), ...(after !== null && { after }) };
    const ours = Object.entries({ ...filters, ...paging });
    const variables = {
      ...question.variables,
      ...Object.fromEntries(ours.map(([name, value]) => [`_rs_${name}`, value])),
    };
    // Before asking: a request that nobody waits for any more would fail with nobody to hear of it.
    signal.throwIfAborted();
    const came = after === null ? ridden : undefined;
    if (came) ridden = undefined;
    const answer = came?.answer ?? (await unlessLeft(ask(variables, context), signal));
    // A list that its type allows to be null, and that is so for no stated reason, holds nothing.
    const ifNull = isNullable.items && answer.errors.length === 0 ? [] : undefined;
    const { page, beside } = readPage(answer, came?.aliases ?? aliasesOf(source), identity, ifNull);
    if (page) return { ...page, beside };
    if (beside.length > 0) throw new PageFailure(beside);
    throw isNullable.page && answer.value === null && after === null ? new NullList() : noPage();
  };
}

/** The same for all who ask for the same fields of the same records. */
export function selectionName(source: PageSource): string {
  return nameOf(source.link, questionOf(source));
}

function questionOf({ adapter, identity, info, selections }: PageSource): UpstreamQuestion {
  const aliases = aliasesOf({ selections });
  const lists = selections.map((selected, index) =>
    field('items', {
      alias: aliases[index],
      selections: notEmpty([...(index === 0 ? identity.selections : []), ...selected]),
    }),
  );
  const pageInfo = field('pageInfo', {
    selections: ['hasNextPage', 'endCursor', ...sizeOf(adapter)].map((name) => field(name)),
  });
  const args = adapter.field.args.map((arg) => ({
    name: arg.name,
    variable: `_rs_${arg.name}`,
    // Where there is a default, leaving the variable out has to be allowed.
    type: astFromType(isRequiredArgument(arg) ? arg.type : getNullableType(arg.type)),
  }));
  return {
    operation: OperationTypeNode.QUERY,
    field: {
      ...field(adapter.name, { selections: [...lists, pageInfo] }),
      arguments: args.map(({ name, variable }) => ({
        kind: Kind.ARGUMENT,
        name: { kind: Kind.NAME, value: name },
        value: { kind: Kind.VARIABLE, name: { kind: Kind.NAME, value: variable } },
      })),
    },
    variableDefinitions: [...(info.operation.variableDefinitions ?? []), ...args.map(definition)],
    fragments: info.fragments,
    variables: getCoercedVariableValues(info.variableValues) ?? {},
  };
}

function aliasesOf({ selections }: Pick<PageSource, 'selections'>): readonly string[] {
  return selections.map((_, index) => (index === 0 ? 'items' : `_rsItems${index}`));
}

/** A walk that leaves waits no longer; the request itself belongs to the whole operation. */
async function unlessLeft<T>(asked: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: left, reject } = Promise.withResolvers<never>();
  const leave = () => reject(signal.reason);
  signal.addEventListener('abort', leave, { once: true });
  try {
    return await Promise.race([asked, left]);
  } finally {
    signal.removeEventListener('abort', leave);
  }
}

function noPage(): GraphQLError {
  return codedError(
    'UPSTREAM_BAD_RESPONSE',
    'The recruiting service gave a page without items or pageInfo. Try again later.',
  );
}

function definition({
  variable,
  type,
}: {
  variable: string;
  type: TypeNode;
}): VariableDefinitionNode {
  return {
    kind: Kind.VARIABLE_DEFINITION,
    variable: { kind: Kind.VARIABLE, name: { kind: Kind.NAME, value: variable } },
    type,
  };
}

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
  return selections.length > 0 ? selections : [field('__typename', { alias: '_rsType' })];
}
