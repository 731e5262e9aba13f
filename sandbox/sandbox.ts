import type { GraphQLSchema } from 'graphql';
import { graphqlRoute } from './graphql.ts';
import { listen, router, type Listener, type Listening, type Route } from './http.ts';
import { madeUpPersons, personsSchema } from './persons-schema.ts';
import { TokenOffice, tokenRoute } from './tokens.ts';

export interface SandboxOptions {
  /** 0, the default, takes any free port. */
  readonly port?: number;
  /** How many persons there are. */
  readonly persons?: number;
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
  expiresIn = 86_400,
}: SandboxOptions = {}): Promise<Sandbox> {
  const tokens = new TokenOffice(expiresIn);
  const listener = createListener(personsSchema(madeUpPersons(persons)), tokens);
  const { url, close } = await listen(listener, port);
  return { url, tokenLink: url + tokens.linkPath, close };
}

/** Answers all requests to the service. */
export function createListener(schema: GraphQLSchema, tokens: TokenOffice): Listener {
  const routes: Readonly<Record<string, Route>> = {
    'POST /graphql': graphqlRoute(schema, tokens),
    'POST /oauth/token': tokenRoute(tokens),
    'GET /auth_check': (request) => tokens.refuse(request) ?? { status: 204 },
    // What an administrator does in the personal account, for which the interface describes no endpoint.
    'POST /account/tokens': ({ headers }) => {
      return { status: 200, body: `http://${headers.host}${tokens.makeNewSet()}\n` };
    },
    'POST /account/revoke': () => {
      tokens.revoke();
      return { status: 200, body: 'All tokens are revoked.\n' };
    },
  };
  return router((name) =>
    name.startsWith('GET /token_links/') ? ({ url }) => tokens.openLink(url) : routes[name],
  );
}
