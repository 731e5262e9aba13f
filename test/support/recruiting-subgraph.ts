import type { PublishedSubgraph } from './composition.ts';
import { startGatewayOverSandbox } from './gateway.ts';
import { serveRecorded, type RecordedServer } from './recorded-server.ts';

/** This project's own subgraph, over a sandbox, on a socket that remembers what it was asked. */
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
  const gateway = await startGatewayOverSandbox(
    { persons },
    { config: { schemaPrefix: prefix || undefined } },
  );
  const server = await serveRecorded((request) => gateway.gateway.yoga.fetch(request));
  const all = prefix === '' ? 'allPersons' : `${prefix.toLowerCase()}AllPersons`;
  const { data } = await server.ask(`{ _service { sdl } everybody: ${all} { id firstName } }`);
  server.received.length = 0;
  return {
    ...server,
    name: 'recruiting',
    sdl: (data!['_service'] as { sdl: string }).sdl,
    persons: data!['everybody'] as RecruitingSubgraph['persons'],
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await gateway[Symbol.asyncDispose]();
    },
  };
}
