import { entryFor } from '../gateway/api-key.ts';
import type { PublishedSubgraph } from './composition.ts';
import { startGatewayOverService } from '../gateway/over-service.ts';
import { serveRecorded, type RecordedServer } from './recorded-server.ts';

/** The credential of the router, the only one that may request entities. */
export const ROUTER_KEY = 'key-of-the-router';
/** A credential that may request everything else. */
const READER_KEY = 'key-of-a-reader';

/** This project's own subgraph, over a sandbox, on a socket that records its requests. */
export interface RecruitingSubgraph extends RecordedServer, PublishedSubgraph {
  /** Sends as the router does, unless other headers are given. */
  ask: RecordedServer['ask'];
  /** All persons in its list. */
  readonly persons: readonly { readonly id: string; readonly firstName: string | null }[];
}

/** @param prefix SCHEMA_PREFIX */
export async function startRecruiting(prefix: string): Promise<RecruitingSubgraph> {
  const gateway = await startGatewayOverService(
    { persons: 230 },
    {
      config: {
        schemaPrefix: prefix || undefined,
        auth: {
          apiKeys: [
            entryFor(ROUTER_KEY, 'router', 'read', 'drain', 'router'),
            entryFor(READER_KEY, 'reader', 'read'),
          ],
          jwt: undefined,
        },
      },
    },
  );
  const server = await serveRecorded((request) => gateway.gateway.handler.fetch(request));
  const ask: RecruitingSubgraph['ask'] = (query, variables, headers) =>
    server.ask(query, variables, { 'x-api-key': ROUTER_KEY, ...headers });
  const all = prefix === '' ? 'allPersons' : `${prefix.toLowerCase()}AllPersons`;
  const { data } = await ask(`{ _service { sdl } everybody: ${all} { id firstName } }`);
  server.received.length = 0;
  return {
    ...server,
    ask,
    name: 'recruiting',
    sdl: (data!['_service'] as { sdl: string }).sdl,
    persons: data!['everybody'] as RecruitingSubgraph['persons'],
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await gateway[Symbol.asyncDispose]();
    },
  };
}
