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
    ['POST /graphql', graphqlRoute(schema, tokens, latency)],
    ['POST /oauth/token', tokenRoute(tokens)],
    ['GET /auth_check', (request) => tokens.refuse(request) ?? { status: 204 }],
    // What an administrator does in the personal account, for which the interface describes no endpoint.
    [
      'POST /account/tokens',
      ({ headers }) => ({ status: 200, text: `http://${headers.host}${tokens.makeNewSet()}\n` }),
    ],
    [
      'POST /account/revoke',
      () => {
        tokens.revoke();
        return { status: 200, text: 'All tokens are revoked.\n' };
      },
    ],
  ]);
  return (request, response) => {
    const path = pathOf(request);
    const route = path.startsWith('/token_links/')
      ? () => tokens.openLink(path)
      : routes.get(`${request.method} ${path}`);
    return respond(route, request, response);
  };
}
