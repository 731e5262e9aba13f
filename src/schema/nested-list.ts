import { randomUUID } from 'node:crypto';
import type { GraphQLResolveInfo } from 'graphql';
import type { PageSource, RiddenPage } from './asking/page-fetcher.ts';
import type { NestedAdapter } from './derivation/adapter.ts';
import type { RecordPlace } from './asking/response-places.ts';
import { errorsBeside, idAlias, placeAlias, rideAlias } from './asking/ride-names.ts';
import { throughParent } from './asking/through-parent.ts';
import type { UpstreamError } from './asking/upstream-value.ts';

/** One parent's list: what its cursors belong to, its first page if that rode along, and the way to more. */
export interface NestedList extends Pick<PageSource, 'askFor' | 'ridden'> {
  readonly name: string;
  /** Of a parent without an id, that nothing of its list is taken for another's. */
  readonly walkName: string;
}

/** @param places of the records, below a connection */
export type FindNestedList = (
  source: unknown,
  info: GraphQLResolveInfo,
  places?: readonly RecordPlace[],
) => NestedList;

/** Finds the list on the object that the upstream gave for its parent. */
export function findNestedList({ parent, name, reach }: NestedAdapter): FindNestedList {
  return (source, info, places) => {
    const given = source as Readonly<Record<string, unknown>>;
    const id = plainId(given[idAlias(parent)]);
    const list = `${parent}.${name}`;
    const named = id === undefined ? list : `${list}(${JSON.stringify(String(id))})`;
    const isOnly = reach.kind === 'path' && !reach.hasId;
    return {
      name: named,
      walkName: id === undefined && !isOnly ? `${list}#${randomUUID()}` : named,
      askFor: throughParent(parent, reach, id),
      ridden: riddenPage(given, rideAlias(parent, String(info.path.key)), places),
    };
  };
}

function riddenPage(
  source: Readonly<Record<string, unknown>>,
  alias: string,
  places: readonly RecordPlace[] = [],
): RiddenPage | undefined {
  const value = source[alias];
  const errors = source[errorsBeside(alias)] as readonly UpstreamError[] | undefined;
  // It does not ride behind a cursor, nor where it would take its parent along.
  if (value === undefined) return undefined;
  return {
    answer: { value, errors: errors ?? [] },
    aliases: places.length > 0 ? places.map(({ keys }) => placeAlias(...keys)) : ['items'],
  };
}

function plainId(id: unknown): string | number | undefined {
  return typeof id === 'string' || typeof id === 'number' ? id : undefined;
}
