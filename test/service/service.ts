import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { GraphQLSchema } from 'graphql';
import type { CursorBehaviour } from '../../sandbox/cursors.ts';
import { listen, pathOf, type Listener } from '../../sandbox/http.ts';
import { PersonList } from '../../sandbox/person-list.ts';
import { personsSchema } from '../../sandbox/persons-schema.ts';
import { createListener } from '../../sandbox/sandbox.ts';
import { TokenOffice } from '../../sandbox/tokens.ts';
import { resultsSchema, richSchema, type Rights } from './schemas.ts';
import { tokenEndpoint, TokenFaults, type Exchange, type TokenAnswers } from './token-answers.ts';

export interface ServiceOptions {
  /** How many persons there are at the start. */
  persons?: number;
  /** Milliseconds before each answer of /graphql. */
  latency?: number;
  /** Lifetime of access tokens, in seconds. */
  expiresIn?: number;
  /** How a cursor behaves when records come and go. */
  cursors?: CursorBehaviour;
  /** Whether a refresh ends the access token before it; otherwise that one lives on until it expires. */
  revokeOnRefresh?: boolean;
  /** The status of the refusal of a refresh before the access token has expired; the refresh token stays valid. */
  refuseEarlyRefresh?: 400 | 403 | undefined;
  /** What is served: the published persons; `rich` or `results` instead of them; or a schema of the test. */
  schema?: 'rich' | 'results' | GraphQLSchema;
  /** The clock, in milliseconds. */
  now?: () => number;
}

export interface Service {
  /** Base URL, without a slash at the end. */
  readonly url: string;
  /** The address that hands out the latest token set. */
  readonly tokenLink: string;
  /** A change is visible from the next page on. */
  readonly persons: PersonList;
  /** What the administrator may see of the lists of `results`; a change is visible from the next request on. */
  readonly rights: Rights;
  readonly stats: Readonly<Stats>;
  /** Sets faults of the answers of /oauth/token. */
  readonly tokenAnswers: TokenAnswers;
  /** The requests to /oauth/token, in order of arrival. */
  readonly exchanges: readonly Exchange[];
  /** An administrator makes a new token. Returns its link; earlier tokens and links stop working. */
  readonly makeNewSet: () => string;
  /** The administrator is demoted: access tokens are revoked, and the refresh token is an invalid grant. */
  readonly revoke: () => void;
  /** Answers a request that another server received. */
  readonly answer: Listener;
  /** Stops listening and ends open connections too. */
  readonly close: () => Promise<void>;
}

interface Stats {
  /** Requests that arrived, whatever their outcome. */
  readonly requests: Record<Endpoint, number>;
  /** Refresh tokens exchanged. */
  readonly refreshes: number;
  /** Requests to /graphql with status 200. */
  graphql: number;
  /** Requests to /graphql not yet answered. */
  inFlight: number;
  maxInFlight: number;
  /** Of the latest request to /graphql. */
  lastHeaders: IncomingHttpHeaders | undefined;
}

type Endpoint = 'tokenLink' | 'authCheck' | 'oauthToken' | 'graphql' | 'unknown';

const ENDPOINTS: Readonly<Record<string, Endpoint>> = {
  '/auth_check': 'authCheck',
  '/oauth/token': 'oauthToken',
  '/graphql': 'graphql',
};

/** Starts a stand-in for the service: the sandbox, with what only tests see and change of it. */
export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const { cursors = 'keyset', latency = 0, now = Date.now } = options;
  const persons = new PersonList(options.persons ?? 137);
  const tokens = new TokenOffice({
    expiresIn: options.expiresIn ?? 86_400,
    now,
  });
  const rights: Rights = { managers: true };
  const faults = new TokenFaults();
  const exchanges: Exchange[] = [];
  const stats: Stats = {
    requests: { tokenLink: 0, authCheck: 0, oauthToken: 0, graphql: 0, unknown: 0 },
    get refreshes() {
      return exchanges.filter(({ outcome }) => SPENT.has(outcome)).length;
    },
    graphql: 0,
    inFlight: 0,
    maxInFlight: 0,
    lastHeaders: undefined,
  };
  const schema = schemaOf(options.schema);
  const honest = createListener({ schema, tokens, latency });
  const answerExchange = tokenEndpoint({
    tokens,
    faults,
    exchanges,
    revokeOnRefresh: options.revokeOnRefresh ?? false,
    refuseEarlyRefresh: options.refuseEarlyRefresh,
  });
  const { url, close } = await listen(answer, 0);
  return {
    url,
    get tokenLink() {
      return url + tokens.linkPath;
    },
    persons,
    rights,
    stats,
    tokenAnswers: faults,
    exchanges,
    makeNewSet: () => url + tokens.makeNewSet(),
    revoke: () => tokens.revoke(),
    answer,
    close,
  };

  function schemaOf(served: ServiceOptions['schema']): GraphQLSchema {
    if (served === 'rich') return richSchema(persons, cursors);
    if (served === 'results') return resultsSchema(persons.length, rights);
    return served ?? personsSchema(persons, cursors);
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = pathOf(request);
    const endpoint = path.startsWith('/token_links/') ? 'tokenLink' : ENDPOINTS[path];
    stats.requests[endpoint ?? 'unknown'] += 1;
    if (endpoint === 'oauthToken') return answerExchange(request, response);
    if (endpoint !== 'graphql') return honest(request, response);
    stats.lastHeaders = request.headers;
    stats.inFlight += 1;
    stats.maxInFlight = Math.max(stats.maxInFlight, stats.inFlight);
    await honest(request, response);
    stats.inFlight -= 1;
    if (response.headersSent && response.statusCode === 200) stats.graphql += 1;
  }
}

const SPENT: ReadonlySet<Exchange['outcome']> = new Set(['answered', 'spent-in-silence']);
