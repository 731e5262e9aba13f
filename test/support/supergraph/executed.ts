import { getStitchedSchemaFromSupergraphSdl } from '@graphql-tools/federation';
import { graphql } from 'graphql';
import type { GraphqlAnswer } from '../gateway/ask-at.ts';
import { composed, type PublishedSubgraph } from './composition.ts';

/** Answers operations across subgraphs in this process, as a router does in its own. */
export interface ExecutedSupergraph {
  ask(query: string, variables?: Record<string, unknown>): Promise<GraphqlAnswer>;
}

/** @param headers that each subgraph gets, by its name */
export function executedSupergraph(
  subgraphs: readonly PublishedSubgraph[],
  headers: Readonly<Record<string, Record<string, string>>> = {},
): ExecutedSupergraph {
  const schema = getStitchedSchemaFromSupergraphSdl({
    supergraphSdl: composed(subgraphs),
    httpExecutorOpts: ({ name }) => ({ headers: headers[name.toLowerCase()] ?? {} }),
    batch: true,
  });
  return {
    async ask(query, variables) {
      const result = await graphql({
        schema,
        source: query,
        contextValue: {},
        ...(variables && { variableValues: variables }),
      });
      return JSON.parse(JSON.stringify(result)) as GraphqlAnswer;
    },
  };
}
