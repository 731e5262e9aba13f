import type { PublishedSubgraph } from './composition.ts';
import { serveRecorded, type RecordedServer } from './recorded-server.ts';
import { createStandIn } from './recruiting-stand-in.ts';

/** This project's own subgraph, on a socket that remembers what it was asked. */
export interface RecruitingSubgraph extends RecordedServer, PublishedSubgraph {
  /** Everybody in its list. */
  readonly persons: readonly { readonly id: string; readonly firstName: string | null }[];
}

export interface RecruitingOptions {
  readonly persons?: number;
  /** SCHEMA_PREFIX */
  readonly prefix?: string;
}

export async function startRecruiting({
  persons = 230,
  prefix = '',
}: RecruitingOptions = {}): Promise<RecruitingSubgraph> {
  const { sdl, fetch } = createStandIn(persons, prefix);
  const server = await serveRecorded(fetch);
  const all = prefix === '' ? 'allPersons' : `${prefix.toLowerCase()}AllPersons`;
  const { data } = await server.ask(`{ everybody: ${all} { id firstName } }`);
  server.received.length = 0;
  return {
    ...server,
    name: 'recruiting',
    sdl,
    persons: data!['everybody'] as RecruitingSubgraph['persons'],
  };
}
