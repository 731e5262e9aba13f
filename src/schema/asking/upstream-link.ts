import type { ExecutionRequest, ExecutionResult } from '@graphql-tools/utils';
import type {
  DocumentNode,
  FieldNode,
  FragmentDefinitionNode,
  GraphQLSchema,
  OperationTypeNode,
  VariableDefinitionNode,
} from 'graphql';
import type { PagePrice } from './page-price.ts';
import type { ReadingWatch } from './reading-watch.ts';
import type { RequestTransform } from '../served-names.ts';

/** The upstream, seen through the schema that is served of it. */
export interface UpstreamLink {
  /** The upstream's schema under served names. */
  readonly schema: GraphQLSchema;
  readonly toUpstream: RequestTransform;
  /** Lets the first pages of nested lists ride in what is asked. */
  readonly writeRides: WriteRides;
  readonly price: PagePrice;
  /** Gives the answer in served names. */
  readonly execute: (request: ExecutionRequest) => Promise<ExecutionResult>;
  readonly watch: ReadingWatch;
}

/**
 * Writes an operation so that the upstream can be asked it: in place of a derived field of a nested list
 * stands the list itself, with its first page, and the id of the parent. Gives the document itself where
 * nothing of it is derived.
 */
export type WriteRides = (
  document: DocumentNode,
  variables: Readonly<Record<string, unknown>>,
  rides: WantedRides,
) => DocumentNode;

/**
 * Which pages ride: all, all but those under these aliases, or `safe`: only those that may be null, so that
 * one that fails takes nothing else with it.
 */
export type WantedRides = 'all' | 'safe' | ReadonlySet<string>;

/** One root field, in served names, that can be asked again and again with other variables. */
export interface UpstreamQuestion extends QuestionContext {
  /** Without an alias: the answer is shared with whoever asks the same under another name. */
  readonly field: FieldNode;
}

export interface QuestionContext {
  readonly operation: OperationTypeNode;
  /** More than are used may be given; what is not used is not sent. */
  readonly variableDefinitions: readonly VariableDefinitionNode[];
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
  /** The caller's own, which decide what is selected. */
  readonly variables: Readonly<Record<string, unknown>>;
}
