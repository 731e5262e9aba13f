import { delegateToSchema, type SubschemaConfig } from '@graphql-tools/delegate';
import type { ExecutionResult } from '@graphql-tools/utils';
import {
  GraphQLError,
  Kind,
  OperationTypeNode,
  type FieldNode,
  type GraphQLResolveInfo,
  type SelectionNode,
} from 'graphql';
import { codedError } from '../errors.ts';
import type { FetchPage } from '../paging/page.ts';
import type { IdentitySelection } from './identity-selection.ts';
import type { Adapter } from './plan-adapters.ts';
import type { RecordError, UpstreamRecord } from './upstream-record.ts';

export interface PageSource {
  readonly adapter: Adapter;
  readonly identity: IdentitySelection;
  readonly subschema: SubschemaConfig;
  readonly context: object;
  readonly info: GraphQLResolveInfo;
  /** Values of the carried-over arguments. */
  readonly filters: Record<string, unknown>;
  /**
   * What to select of each record, once for each place of the operation that shows records. Places are
   * asked for under aliases of one request: two of them may use one alias for different fields.
   */
  readonly selections: readonly (readonly SelectionNode[])[];
}

/** Pages of a list through the wrapped schema, with the caller's own selection on each record. */
export function fetchUpstreamPage(source: PageSource): FetchPage<UpstreamRecord> {
  const { adapter, identity, subschema, context, info, filters } = source;
  const aliases = source.selections.map((_, index) => (index === 0 ? 'items' : `_rsItems${index}`));
  const selectionSet = {
    kind: Kind.SELECTION_SET as const,
    selections: [
      ...source.selections.map((selections, index) =>
        field(
          'items',
          [...(index === 0 ? identity.selections : []), ...selections],
          aliases[index],
        ),
      ),
      field('pageInfo', [field('hasNextPage'), field('endCursor')]),
    ],
  };

  return async ({ first, after }, signal) => {
    let errors: readonly GraphQLError[] = [];
    const container = (await delegateToSchema({
      schema: subschema,
      operation: OperationTypeNode.QUERY,
      fieldName: adapter.name,
      // The caller's own arguments and directives are not the upstream's.
      fieldNodes: [field(adapter.name)],
      args: { ...filters, ...(first !== undefined && { first }), ...(after !== null && { after }) },
      selectionSet,
      returnType: adapter.field.type,
      context: { ...context, signal },
      info,
      skipTypeMerging: true,
      transforms: [
        {
          // Taken aside before the library places them: only later is known where the caller sees a record.
          transformResult: (result: ExecutionResult): ExecutionResult => {
            errors = (result.errors ?? []) as GraphQLError[];
            return result.data ? { data: result.data } : {};
          },
        },
      ],
    })) as UpstreamPage | null | Error;
    if (container instanceof Error) throw container;
    return readPage(container, errors, aliases, identity);
  };
}

interface UpstreamPage {
  readonly pageInfo?: { hasNextPage: unknown; endCursor: unknown } | null;
  readonly [alias: string]: unknown;
}

function readPage(
  container: UpstreamPage | null,
  errors: readonly GraphQLError[],
  aliases: readonly string[],
  identity: IdentitySelection,
) {
  const lists = aliases.map((alias) => container?.[alias]);
  const { hasNextPage, endCursor } = container?.pageInfo ?? {};
  const isWhole = lists.every(Array.isArray) && typeof hasNextPage === 'boolean';
  if (!isWhole) throw pageError(errors);
  const inside = errorsByRecord(errors, aliases);
  const [items = []] = lists as unknown[][];
  return {
    items: items.map((record, place) => ({
      identity: identity.identityOf(record),
      shapes: lists.map((list, shape) => ({
        value: (list as unknown[])[place] ?? null,
        errors: inside.get(`${shape}.${place}`) ?? [],
      })),
    })),
    hasNextPage,
    endCursor:
      typeof endCursor === 'string' || typeof endCursor === 'number' ? String(endCursor) : null,
  };
}

/** The upstream's own error when it gave one: without its path, so that it gets the place it is thrown at. */
function pageError(errors: readonly GraphQLError[]): GraphQLError {
  const [error] = errors;
  if (error) return new GraphQLError(error.message, { extensions: error.extensions });
  return codedError(
    'UPSTREAM_BAD_RESPONSE',
    'The recruiting service gave a page without items or pageInfo. Try again later.',
  );
}

function errorsByRecord(errors: readonly GraphQLError[], aliases: readonly string[]) {
  const byRecord = new Map<string, RecordError[]>();
  for (const { path = [], message, extensions } of errors) {
    const [, alias, place, ...inside] = path;
    const shape = aliases.indexOf(String(alias));
    if (shape < 0 || typeof place !== 'number') continue;
    const key = `${shape}.${place}`;
    const list = byRecord.get(key) ?? [];
    byRecord.set(key, [...list, { path: inside, message, extensions }]);
  }
  return byRecord;
}

function field(name: string, selections?: readonly SelectionNode[], alias?: string): FieldNode {
  return {
    kind: Kind.FIELD,
    name: { kind: Kind.NAME, value: name },
    ...(alias !== undefined && alias !== name && { alias: { kind: Kind.NAME, value: alias } }),
    ...(selections && { selectionSet: { kind: Kind.SELECTION_SET, selections } }),
  };
}
