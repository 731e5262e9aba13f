import type { IncomingMessage } from 'node:http';
import type { GraphQLSchema } from 'graphql';
import { graphqlRoute } from './graphql.ts';
import { listen, pathOf, respond, type Listener, type Listening, type Route } from './http.ts';
import { madeUpPersons, personsSchema } from './persons-schema.ts';
import { TokenOffice, tokenRoute } from './tokens.ts';

export interface SandboxOptions {
  /** 0, the default, takes any free port. */
  readonly port?: number;
  /** How many persons there are. */
  readonly persons?: number;
  /** Milliseconds before each answer of /graphql. */
  readonly latency?: number;
  /** Lifetime of access tokens, in seconds. */
  readonly expiresIn?: number;
}

export interface Sandbox extends Listening {
  /** The address that hands out the first token set. */
  readonly tokenLink: string;
}

/** Starts a recruiting service with made-up persons that follows the published interface to the letter. */
export async function startSandbox({
  port = 0,
  persons = 137,
  latency = 0,
  expiresIn = 86_400,
}: SandboxOptions = {}): Promise<Sandbox> {
  const tokens = new TokenOffice({ expiresIn });
  const schema = personsSchema(madeUpPersons(persons));
  const { url, close } = await listen(createListener({ schema, tokens, latency }), port);
  return { url, tokenLink: url + tokens.linkPath, close };
}

interface SandboxParts {
  readonly schema: GraphQLSchema;
  readonly tokens: TokenOffice;
  /** Milliseconds before each answer of /graphql. */
  readonly latency: number;
}

/** Answers all requests to the service. */
export function createListener({ schema, tokens, latency }: SandboxParts): Listener {
  const routes = new Map<string, Route>([
    ['/graphql', graphqlRoute(schema, tokens, latency)],
    ['/oauth/token', tokenRoute(tokens)],
    [
      '/auth_check',
      { method: 'GET', answer: (request) => tokens.refuse(request) ?? { status: 204 } },
    ],
    ['/account/tokens', inAccount(({ headers }) => `http://${headers.host}${tokens.makeNewSet()}`)],
    [
      '/account/revoke',
      inAccount(() => {
        tokens.revoke();
        return 'All tokens are revoked.';
      }),
    ],
  ]);
  // A link that no longer works says so.
  const link: Route = { method: 'GET', answer: (request) => tokens.openLink(pathOf(request)) };
  return (request, response) => {
    const path = pathOf(request);
    return respond(path.startsWith('/token_links/') ? link : routes.get(path), request, response);
  };
}

/** What an administrator does in the personal account, for which the interface describes no endpoint. */
function inAccount(action: (request: IncomingMessage) => string): Route {
  return {
    method: 'POST',
    answer: (request) => ({ status: 200, text: `${action(request)}\n` }),
  };
}
