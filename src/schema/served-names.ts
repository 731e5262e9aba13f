import type { ExecutionResult } from '@graphql-tools/utils';
import { RenameTypes } from '@graphql-tools/wrap';
import type { DocumentNode, GraphQLSchema } from 'graphql';
import { RELAY_PAGE_INFO } from './plan-adapters.ts';

/** A document in served names, put back into the upstream's. */
export type RequestTransform = (document: DocumentNode) => DocumentNode;
/** An answer in the upstream's names, put into served ones. */
export type ResultTransform = (result: ExecutionResult) => ExecutionResult;

/** The name `PageInfo` is Relay's, and shared across a supergraph; an upstream type of that name gives way. */
export function servedNames(snapshot: GraphQLSchema) {
  let instead = `Upstream${RELAY_PAGE_INFO}`;
  while (snapshot.getType(instead)) instead += '_';
  const rename = new RenameTypes((name) => (name === RELAY_PAGE_INFO ? instead : name));
  const toUpstream: RequestTransform = (document) =>
    rename.transformRequest({ document }, {} as never, {}).document;
  const fromUpstream: ResultTransform = (result) => rename.transformResult(result, {} as never, {});
  return { transforms: [rename], toUpstream, fromUpstream };
}
