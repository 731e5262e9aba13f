import {
  composeSchemaContract,
  composeServices,
  type CompositionResult,
} from '@theguild/federation-composition';
import { parse } from 'graphql';

/** A subgraph as it is published to a registry. */
export interface PublishedSubgraph {
  readonly name: string;
  readonly sdl: string;
  readonly url: string;
}

export function compose(subgraphs: readonly PublishedSubgraph[]): CompositionResult {
  return composeServices(subgraphs.map(serviceOf));
}

/** Composes the contract that excludes these tags, as a registry does. */
export function composeContract(
  subgraphs: readonly PublishedSubgraph[],
  excluded: readonly string[],
): CompositionResult {
  const filter = { include: new Set<string>(), exclude: new Set(excluded) };
  return composeSchemaContract(subgraphs.map(serviceOf), filter);
}

/** What clients see of the contract of one subgraph that excludes a tag, without descriptions. */
export function contractOf(sdl: string, tag: string): string {
  const subgraph = { name: 'recruiting', sdl, url: 'http://localhost/graphql' };
  const { errors, publicSdl } = composeContract([subgraph], [tag]);
  if (errors) throw new Error(`Without ${tag} it does not compose:\n${errors.join('\n')}`);
  return publicSdl.replaceAll(/"""[^]*?"""/g, '');
}

function serviceOf({ name, sdl, url }: PublishedSubgraph) {
  return { name, typeDefs: parse(sdl), url };
}

/** Composes the supergraph of compatible subgraphs. */
export function composed(subgraphs: readonly PublishedSubgraph[]): string {
  const { supergraphSdl, errors } = compose(subgraphs);
  if (errors) throw new Error(`They do not compose:\n${errors.join('\n')}`);
  return supergraphSdl;
}
