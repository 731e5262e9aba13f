import { composeServices, type CompositionResult } from '@theguild/federation-composition';
import { parse } from 'graphql';

/** A subgraph as it is published to a registry. */
export interface PublishedSubgraph {
  readonly name: string;
  readonly sdl: string;
  readonly url: string;
}

export function compose(subgraphs: readonly PublishedSubgraph[]): CompositionResult {
  return composeServices(
    subgraphs.map(({ name, sdl, url }) => ({ name, typeDefs: parse(sdl), url })),
  );
}

/** Composes the supergraph of compatible subgraphs. */
export function composed(subgraphs: readonly PublishedSubgraph[]): string {
  const { supergraphSdl, errors } = compose(subgraphs);
  if (errors) throw new Error(`They do not compose:\n${errors.join('\n')}`);
  return supergraphSdl;
}
