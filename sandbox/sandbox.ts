import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { GraphQLSchema } from 'graphql';
import { graphqlEndpoint } from './answer-graphql.ts';
import type { CursorBehaviour } from './cursors.ts';
import { ALL_HABITS, type Habits } from './habits.ts';
import { PersonList } from './person-list.ts';
import { personsSchema } from './persons-schema.ts';
import { resultsSchema, type Rights } from './results-schema.ts';
import { richSchema } from './rich-schema.ts';
import { createStats, routeRequests, type Route, type Stats } from './route-requests.ts';
import {
  oauthTokenEndpoint,
  TokenFaults,
  type Exchange,
  type TokenAnswers,
} from './token-answers.ts';
import { TokenOffice, type TokenState } from './token-office.ts';
import { madeUpApplications, madeUpVacancies, type Applications } from './vacancies.ts';

export interface SandboxOptions extends Habits {
  /** 0, the default, takes any free port. */
  port?: number;
  host?: string;
  /** How many persons there are at the start. */
  persons?: number;
  /** Milliseconds before each answer of /graphql. */
  latency?: number;
  /** Milliseconds before each answer of /oauth/token; the token is exchanged at once. */
  tokenLatency?: number;
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
  /** Whether vacancies with candidates are served beside the persons. */
  rich?: boolean;
  /** Whether the lists of `--schema results` are served: fields that return unions of their result and of an error. */
  results?: boolean;
  /** Turns on all habits that are not set, and serves the lists of `results` unless `rich` is set. */
  allHabits?: boolean;
  /** What an earlier sandbox saved; the new one continues from there. */
  saved?: SandboxState | undefined;
  /** Called with each change that a restart would lose, before its result is sent. */
  save?: (state: SandboxState) => void;
  /** The clock, in milliseconds. */
  now?: () => number;
}

/** As JSON can hold it. */
export interface SandboxState {
  readonly tokens: TokenState;
  /** Of the rich schema; empty without it. */
  readonly applications: Applications;
}

export interface Sandbox {
  /** Base URL, without a slash at the end. */
  url: string;
  /** The address that hands out the latest token set. */
  readonly tokenLink: string;
  /** What the built-in schema serves; a change is visible from the next page on. */
  persons: PersonList;
  /** What the administrator may see of the lists of `results`; a change is visible from the next request on. */
  rights: Rights;
  stats: Readonly<Stats>;
  /** Sets faults of the answers of /oauth/token. */
  tokenAnswers: TokenAnswers;
  /** The requests to /oauth/token, in order of arrival. */
  exchanges: readonly Exchange[];
  /** An administrator makes a new token. Returns its link; earlier tokens and links stop working. */
  makeNewSet: () => string;
  /** The administrator is demoted: access tokens are revoked, and the refresh token is an invalid grant. */
  revoke: () => void;
  /** Answers a request that another server received. */
  answer: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** Stops listening and ends open connections too. */
  close: () => Promise<void>;
}

/** Starts a recruiting service with made-up persons that follows the published interface to the letter. */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { port = 0, host = '127.0.0.1', latency = 0, cursors = 'keyset' } = options;
  const persons = new PersonList(options.persons ?? 137);
  const { saved, rich = false, allHabits = false } = options;
  const { results = allHabits && !rich } = options;
  const habits: Habits = { ...(allHabits && ALL_HABITS), ...options };
  const vacancies = rich || results ? madeUpVacancies() : [];
  const applications =
    saved?.applications ?? madeUpApplications(rich ? vacancies : [], persons.length);
  const save = () => options.save?.({ tokens: tokens.state, applications });
  const stats = createStats();
  const faults = new TokenFaults();
  const exchanges: Exchange[] = [];
  const tokens = new TokenOffice({
    expiresIn: options.expiresIn ?? 86_400,
    refreshExpiresIn: options.refreshExpiresIn ?? 10_368_000,
    revokeOnRefresh: options.revokeOnRefresh ?? false,
    refusesEarly: habits.refuseEarlyRefresh !== undefined,
    linkPage: habits.linkPage ?? false,
    now: options.now ?? Date.now,
    saved: saved?.tokens,
    onChange: save,
  });
  save();
  const rights: Rights = { managers: true };
  const schema =
    options.schema ??
    (results
      ? resultsSchema({ persons, vacancies }, cursors, rights)
      : rich
        ? richSchema({ persons, vacancies, applications }, cursors, save)
        : personsSchema(persons, cursors));

  const routes = new Map<string, Route>([
    [
      '/auth_check',
      {
        name: 'authCheck',
        method: 'GET',
        answer: (request) => tokens.refuse(request) ?? { status: 204 },
      },
    ],
    [
      '/oauth/token',
      {
        name: 'oauthToken',
        method: 'POST',
        answer: oauthTokenEndpoint({
          tokens,
          stats,
          faults,
          exchanges,
          latency: options.tokenLatency ?? 0,
          earlyStatus: habits.refuseEarlyRefresh ?? 400,
        }),
      },
    ],
    [
      '/graphql',
      {
        name: 'graphql',
        method: 'POST',
        answer: graphqlEndpoint({ schema, latency, tokens, stats, habits }),
      },
    ],
  ]);
  // The interface describes no endpoint for what an administrator does in the personal account.
  const inAccount = (path: string, action: () => string) =>
    routes.set(path, {
      name: 'account',
      method: 'POST',
      answer: () => ({ status: 200, text: `${action()}\n`, headers: PLAIN_TEXT }),
    });
  inAccount('/account/tokens', makeNewSet);
  inAccount('/account/revoke', () => {
    tokens.revoke();
    return 'All tokens are revoked.';
  });
  if (results) {
    inAccount('/account/hide-managers', () => {
      rights.managers = false;
      return 'The administrator of the tokens may not see the managers.';
    });
    inAccount('/account/show-managers', () => {
      rights.managers = true;
      return 'The administrator of the tokens may see the managers.';
    });
  }
  // The address of a link that no longer works is kept, so that its answer can say why.
  const openLinkAt = (path: string) =>
    routes.set(path, { name: 'tokenLink', method: 'GET', answer: () => tokens.openLink(path) });
  openLinkAt(tokens.linkPath);

  const answer = routeRequests(routes, stats, habits);
  const server = createServer(
    { keepAliveTimeout: KEEP_ALIVE_MS },
    (request, response) => void answer(request, response),
  );
  const url = await listen(server, port, host);
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
    makeNewSet,
    revoke: () => tokens.revoke(),
    answer,
    close: () => close(server),
  };

  function makeNewSet(): string {
    tokens.makeNewSet();
    openLinkAt(tokens.linkPath);
    return url + tokens.linkPath;
  }
}

const PLAIN_TEXT = { 'content-type': 'text/plain; charset=utf-8' };

/**
 * The value of common proxies. With Node's 5 s, a client may send on a connection that is just being closed, and a
 * mutation is not sent again.
 */
const KEEP_ALIVE_MS = 75_000;

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
    // The callback's only error is that the server is closed already, which is fine.
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
