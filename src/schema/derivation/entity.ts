import type { GraphQLArgument, GraphQLObjectType, GraphQLOutputType } from 'graphql';
import type { Adapter } from './adapter.ts';

/** A type whose records can be told from each other by their id, so that other subgraphs can refer to them. */
export interface Entity {
  readonly type: GraphQLObjectType;
  /** Of its `id`, null left out. */
  readonly idType: GraphQLOutputType;
  /** Undefined: its records cannot be found again. */
  readonly lookup: EntityLookup | undefined;
  /** The field of Query that is derived for it; undefined where there is one, or cannot be. */
  readonly field: string | undefined;
}

export type EntityLookup =
  | { readonly kind: 'id'; readonly field: string; readonly argument: GraphQLArgument }
  | { readonly kind: 'list'; readonly adapter: Adapter };

/** What became of one entity, for `schema explain`. */
export interface EntityReport {
  readonly type: string;
  /** How its records are found by their ids; null: they are not. */
  readonly foundBy: string | null;
  /** The derived field. */
  readonly field: string | null;
  readonly why: readonly string[];
}
