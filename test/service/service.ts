import { EventEmitter, once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { GraphQLSchema } from 'graphql';
import { graphqlRoute } from '../../sandbox/graphql.ts';
import { listen, pathOf, problem } from '../../sandbox/http.ts';
import { personsSchema } from '../../sandbox/persons-schema.ts';
import { createListener } from '../../sandbox/sandbox.ts';
import { TokenOffice, tokenRoute } from '../../sandbox/tokens.ts';
import type { CursorKind } from './list-model.ts';
import { resultsSchema, richSchema } from './made.ts';
import { PersonList } from './person-list.ts';
import { TokenAnswers, type Exchange } from './token-answers.ts';

export interface ServiceOptions {
  /** The path of the service. */
  base?: string;
  /** How many persons there are at the start. */
  persons?: number;
  /** Lifetime of access tokens, in seconds. */
  expiresIn?: number;
  /** How a cursor behaves when records come and go. */
  cursors?: CursorKind;
  /** Whether a refresh ends the access token before it; otherwise that one lives on until it expires. */
  revokeOnRefresh?: boolean;
  /** What is served: the published persons; `rich` or `results` instead of them; or a schema of the test. */
  schema?: 'rich' | 'results' | GraphQLSchema;
  /** The clock, in milliseconds. */
  now?: () => number;
}

/** One request to /graphql or /auth_check, as it arrived. */
export interface Received {
  readonly path: string;
  readonly method: string | undefined;
  readonly headers: IncomingHttpHeaders;
  /** The bearer token. */
  readonly token: string;
  readonly body: string;
  readonly connection: Socket;
  /** Resolves when the exchange is over: answered completely, or ended by one side. */
  readonly over: Promise<'answered' | 'cut'>;
}

/** How one request to /graphql or /auth_check is answered. */
export type Reply = (
  response: ServerResponse,
  received: Received,
  service: Service,
) => void | Promise<void>;

export type Service = Awaited<ReturnType<typeof startService>>;

/** Starts a stand-in for the service: the sandbox, with what only tests see and change of it. */
export async function startService(options: ServiceOptions = {}) {
  const { base = '', expiresIn = 86_400, now = Date.now } = options;
  let ahead = 0;
  const persons = new PersonList(options.persons ?? 137, options.cursors);
  const tokens = new TokenOffice(expiresIn, () => now() + ahead);
  const tokenAnswers = new TokenAnswers();
  const exchanges: Exchange[] = [];
  const received: Received[] = [];
  const otherAgents: unknown[] = [];
  const arrivals = new EventEmitter().setMaxListeners(0);
  let inFlight = 0;
  const schema = schemaOf(options.schema);
  const sandbox = createListener(schema, tokens);
  const graphql = graphqlRoute(schema, tokens);
  let replies: readonly Reply[] = [answerHonestly];
  let checkReply: Reply = answerHonestly;

  const { url: root, close } = await listen(async (request, response) => {
    await respond(request, response).catch((error: unknown) => response.destroy(error as Error));
  }, 0);
  const url = root + base;

  const service = {
    /** Base URL, without a slash at the end. */
    url,
    /** The address that hands out the latest token set. */
    get tokenLink() {
      return url + tokens.linkPath;
    },
    /** A change is visible from the next page on. */
    persons,
    /** Requests to /graphql, in the order of their arrival. */
    received: received as readonly Received[],
    /** How many of them are not yet answered. */
    get inFlight() {
      return inFlight;
    },
    /** `User-Agent` and `Api-User-Agent` of every request to anything else. */
    otherAgents,
    /** Sets the replies to the next requests to /graphql, one each; the last one stays. */
    answer: (...next: [Reply, ...Reply[]]) => {
      replies = next;
    },
    /** Sets the reply to every request to /auth_check. */
    answerChecks: (reply: Reply) => {
      checkReply = reply;
    },
    /** Answers as the sandbox does. */
    answerHonestly,
    /** Returns what the sandbox answers to a request to /graphql. */
    honestAnswer: async (request: Received) => graphql(messageOf(request)),
    /** Resolves when this number of requests to /graphql has arrived. */
    arrived: async (count: number) => {
      while (received.length < count) await once(arrivals, 'one');
    },
    /** The replies to requests to /oauth/token. */
    tokenAnswers,
    /** The requests to /oauth/token, in order of arrival. */
    exchanges,
    /** An administrator makes a new token. Returns its link; earlier tokens and links stop working. */
    makeNewSet: () => url + tokens.makeNewSet(),
    /** The administrator is demoted: access tokens are revoked, and the refresh token is an invalid grant. */
    revoke: () => tokens.revoke(),
    /** Makes all access tokens so far expire. */
    expire: () => {
      ahead += expiresIn * 1000;
    },
    /** Ends all connections, and refuses new ones. */
    close,
    [Symbol.asyncDispose]: close,
  };
  return service;

  async function answerHonestly(response: ServerResponse, request: Received): Promise<void> {
    if (!response.destroyed) await sandbox(messageOf(request), response);
  }

  function schemaOf(served: ServiceOptions['schema']): GraphQLSchema {
    if (served === 'rich') return richSchema();
    if (served === 'results') return resultsSchema();
    return served ?? personsSchema(persons.read);
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, headers, socket: connection } = request;
    if (!request.url?.startsWith(`${base}/`)) {
      response.writeHead(404).end(JSON.stringify(problem(404, 'Not the service.').body));
      return;
    }
    request.url = request.url.slice(base.length);
    const path = pathOf(request);
    if (path !== '/graphql') otherAgents.push(headers['user-agent'], headers['api-user-agent']);
    const over = once(response, 'close').then(() =>
      response.writableFinished ? ('answered' as const) : ('cut' as const),
    );
    const token = (headers.authorization ?? '').replace(/^Bearer /, '');
    const body = await text(request);
    const arrival: Received = { path, method, headers, token, body, connection, over };
    if (path === '/auth_check') return checkReply(response, arrival, service);
    if (path === '/oauth/token') return exchange(response, arrival);
    if (path !== '/graphql') return sandbox(messageOf(arrival), response);
    inFlight += 1;
    void over.then(() => (inFlight -= 1));
    const reply = replies[0]!;
    if (replies.length > 1) replies = replies.slice(1);
    received.push(arrival);
    arrivals.emit('one');
    await reply(response, arrival, service);
  }

  async function exchange(response: ServerResponse, arrival: Received): Promise<void> {
    const form = new URLSearchParams(arrival.body);
    const one: Exchange = {
      refreshToken: form.get('refresh_token') ?? '',
      outcome: 'not-processed',
    };
    exchanges.push(one);
    response.once('finish', () => {
      if (one.outcome === 'spent-in-silence') one.outcome = 'answered';
    });
    const grant = async () => {
      if (options.revokeOnRefresh && tokens.accepts(one.refreshToken)) tokens.revokeAccessTokens();
      const answer = await tokenRoute(tokens)(messageOf(arrival));
      one.outcome = answer.status === 200 ? 'spent-in-silence' : 'invalid-grant';
      return answer;
    };
    await tokenAnswers.take()(response, grant);
  }
}

/** The request as Node receives it. */
function messageOf({ path: url, method, headers, body, connection }: Received): IncomingMessage {
  const request = Object.assign(Readable.from([Buffer.from(body)]), { url, method, headers });
  return Object.assign(request, { socket: connection }) as IncomingMessage;
}
