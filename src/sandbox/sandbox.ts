import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { GraphQLSchema } from 'graphql';
import { graphqlEndpoint } from './answer-graphql.ts';
import { countRequests } from './count-requests.ts';
import type { Stats } from './count-requests.ts';
import type { CursorBehaviour } from './cursors.ts';
import { oauthTokenEndpoint } from './exchange-grant.ts';
import { PersonList } from './person-list.ts';
import { personsSchema } from './persons-schema.ts';
import { routeRequests } from './route-requests.ts';
import { TokenOffice } from './token-office.ts';

export interface SandboxOptions {
  /** 0, the default, takes any free port. */
  port?: number;
  host?: string;
  /** How many persons there are at the start. */
  persons?: number;
  /** Milliseconds before each answer of /graphql. */
  latency?: number;
  /** Lifetime of access tokens, in seconds. */
  expiresIn?: number;
  /** Lifetime of refresh tokens, in seconds. */
  refreshExpiresIn?: number;
  /** How a cursor behaves when records come and go. */
  cursors?: CursorBehaviour;
  /** Whether a refresh ends the access token before it; otherwise that one lives on until it expires. */
  revokeOnRefresh?: boolean;
  /** An executable schema to serve instead of the persons. */
  schema?: GraphQLSchema;
  /** The clock, in milliseconds. */
  now?: () => number;
}

export interface Sandbox {
  /** Base URL, without a slash at the end. */
  url: string;
  /** Where the first token set is handed out. */
  tokenLink: string;
  /** What the built-in schema serves; changes show in the next page. */
  persons: PersonList;
  stats: Readonly<Stats>;
  /** Stops listening and ends open connections too. */
  close: () => Promise<void>;
}

/** A recruiting service to play with: one process, made-up persons, its published interface to the letter. */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { port = 0, host = '127.0.0.1', latency = 0, cursors = 'keyset' } = options;
  const persons = new PersonList(options.persons ?? 137);
  const schema = options.schema ?? personsSchema(persons, cursors);
  const stats = countRequests();
  const tokens = new TokenOffice({
    expiresIn: options.expiresIn ?? 86_400,
    refreshExpiresIn: options.refreshExpiresIn ?? 10_368_000,
    revokeOnRefresh: options.revokeOnRefresh ?? false,
    now: options.now ?? Date.now,
  });

  const server = createServer(
    routeRequests(
      {
        [tokens.linkPath]: {
          name: 'tokenLink',
          method: 'GET',
          answer: () => tokens.openLink(),
        },
        '/auth_check': {
          name: 'authCheck',
          method: 'GET',
          answer: (request) => tokens.refuse(request) ?? { status: 204 },
        },
        '/oauth/token': {
          name: 'oauthToken',
          method: 'POST',
          answer: oauthTokenEndpoint(tokens, stats),
        },
        '/graphql': {
          name: 'graphql',
          method: 'POST',
          answer: graphqlEndpoint({ schema, latency, tokens, stats }),
        },
      },
      stats,
    ),
  );
  const url = await listen(server, port, host);
  return {
    url,
    tokenLink: url + tokens.linkPath,
    persons,
    stats,
    close: () => close(server),
  };
}

async function listen(server: Server, port: number, host: string): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const address = server.address();
  const taken = typeof address === 'object' && address !== null ? address.port : port;
  return `http://${host.includes(':') ? `[${host}]` : host}:${taken}`;
}

async function close(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    // The callback's only error says that the server was closed before: that is what is wanted.
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
