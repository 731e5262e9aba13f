import { getCoercedVariableValues } from '@graphql-tools/delegate';
import { astFromType } from '@graphql-tools/utils';
import {
  getNamedType,
  getNullableType,
  GraphQLInt,
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
import { nameOf } from './ask-upstream.ts';
import type { UpstreamLink, UpstreamQuestion } from './upstream-link.ts';
import type { IdentitySelection } from './identity-selection.ts';
import type { Adapter } from '../derivation/adapter.ts';

/** What the pages of a list are asked for. */
export interface PageSelection {
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
}

/** The same for all who ask for the same fields of the same records. */
export function selectionName(source: PageSelection): string {
  return nameOf(source.link, questionOf(source));
}

/** The question for one page; its size and place are variables. */
export function questionOf({
  adapter,
  identity,
  info,
  selections,
}: PageSelection): UpstreamQuestion {
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

/** The names of the page's lists of records, one for each place that shows records. */
export function aliasesOf({ selections }: Pick<PageSelection, 'selections'>): readonly string[] {
  return selections.map((_, index) => (index === 0 ? 'items' : `_rsItems${index}`));
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
