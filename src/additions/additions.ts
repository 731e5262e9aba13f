import type { SubschemaConfig } from '@graphql-tools/delegate';
import type { IResolvers } from '@graphql-tools/utils';
import type { DocumentNode } from 'graphql';

/** What a company adds to the served schema: options of `stitchSchemas`. */
export interface Additions {
  /** The origin of the additions, for messages about mistakes: the name of a file, for example. */
  readonly source?: string | undefined;
  /** Types and fields, as SDL, with the names that callers see. */
  readonly typeDefs?: TypeDefs | undefined;
  /** The resolvers of these fields. */
  readonly resolvers?: IResolvers | readonly IResolvers[] | undefined;
  /** Further services. */
  readonly subschemas?: readonly SubschemaConfig[] | undefined;
}

type TypeDefs = string | DocumentNode | readonly TypeDefs[];

/** The same as lists. */
export interface AddedParts {
  readonly source: string;
  readonly documents: readonly DocumentNode[];
  readonly resolvers: readonly IResolvers[];
  readonly subschemas: readonly SubschemaConfig[];
}
