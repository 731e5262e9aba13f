import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { graphql, type GraphQLError } from 'graphql';
import pino from 'pino';
import { onTestFinished } from 'vitest';
import { PersonList } from '../../../src/sandbox/person-list.ts';
import { personsSchema } from '../../../src/sandbox/persons-schema.ts';
import { openRescue } from '../../../src/tokens/store/rescue.ts';
import { createSealer } from '../../../src/tokens/store/seal.ts';
import { openSqliteStore } from '../../../src/tokens/store/sqlite/sqlite-store.ts';
import type { TokenPair } from '../../../src/tokens/token-set.ts';
import type { StoredTokens, TokenStore } from '../../../src/tokens/store/token-store.ts';
import { listenForTest } from '../test-server.ts';
import type { Clock } from '../../../src/clock.ts';
import { ManualClock } from '../random/manual-clock.ts';
import { quickFolder } from '../quick-folder.ts';

export const PERSON = '{ persons(first: 1) { items { id } } }';

/** A pair that no service issued. */
export function pairOf(name: string, lives: Partial<TokenPair> = {}): TokenPair {
  return {
    accessToken: `access-${name}`,
    refreshToken: `refresh-${name}`,
    expiresIn: 86_400,
    refreshTokenExpiresIn: 10_368_000,
    name: 'Test',
    ...lives,
  };
}

type Method = 'read' | 'import' | 'claim' | 'endAttempt' | 'save';

/** A store that records what was saved, and can be made to fail or to wait. */
export interface WatchedStore extends TokenStore {
  /** Access tokens that were saved successfully. */
  readonly kept: ReadonlySet<string>;
  /** Every token that was passed to it. */
  readonly secrets: ReadonlySet<string>;
  /** Methods that fail while they are in this set. */
  readonly failing: Set<Method>;
  /** Makes the method wait; `reached` resolves when it is called. */
  hold(method: Method): { reached: Promise<void>; release: () => void };
  useClock(clock: Pick<Clock, 'now'>): void;
}

/**
 * Stays open when a gateway closes it, so that the next one can continue with it; closed after the test.
 *
 * @param open receives the wall clock of the gateway that uses the store
 */
export function watchStore(open: (now: () => number) => TokenStore = memoryStore): WatchedStore {
  let clock: Pick<Clock, 'now'> = new ManualClock();
  const inner = open(() => clock.now());
  onTestFinished(() => inner.close());
  const kept = new Set<string>();
  const secrets = new Set<string>();
  const failing = new Set<Method>();
  const gates = new Map<Method, () => Promise<void>>();

  async function through<T>(method: Method, work: () => Promise<T>, pair?: TokenPair): Promise<T> {
    if (pair) secrets.add(pair.accessToken).add(pair.refreshToken);
    await gates.get(method)?.();
    if (failing.has(method) && method !== 'endAttempt')
      throw new Error(`${method}: the disk is full`);
    const result = await work();
    if (pair) kept.add(pair.accessToken);
    return result;
  }

  return {
    ...inner,
    kept,
    secrets,
    failing,
    useClock: (given) => void (clock = given),
    hold: (method) => {
      const reached = Promise.withResolvers<void>();
      const gate = Promise.withResolvers<void>();
      gates.set(method, () => {
        reached.resolve();
        return gate.promise;
      });
      const release = () => {
        gates.delete(method);
        gate.resolve();
      };
      return { reached: reached.promise, release };
    },
    read: () => through('read', () => inner.read()),
    import: (set) => through('import', () => inner.import(set), set.pair),
    claim: (claim) => through('claim', () => inner.claim(claim)),
    endAttempt: (attempt, ending) =>
      through('endAttempt', async () => {
        if (!failing.has('endAttempt')) return inner.endAttempt(attempt, ending);
        // The claim stays, and yet the right to exchange is released.
        await inner.endAttempt(attempt, { ...ending, outcome: 'uncertain' });
        throw new Error('endAttempt: the disk is full');
      }),
    save: (saved) => through('save', () => inner.save(saved), saved.pair),
    close: async () => {},
  };
}

/**
 * A store in memory that is read again only after something was written. These tests span months in which a gateway
 * reads it every half a minute, and no other process can change it.
 */
function memoryStore(now: () => number): TokenStore {
  const store = openSqliteStore(':memory:', { now });
  let calls = 0;
  let last: Promise<StoredTokens | null> | undefined;
  const anew =
    <Given extends unknown[], Result>(method: (...given: Given) => Promise<Result>) =>
    async (...given: Given): Promise<Result> => {
      calls += 1;
      last = undefined;
      try {
        return await method(...given);
      } finally {
        calls -= 1;
      }
    };
  return {
    ...store,
    read: async () => {
      if (calls > 0) return store.read();
      const stored = await (last ??= store.read());
      return stored && { ...stored, age: now() - stored.savedAt };
    },
    import: anew(store.import),
    withdraw: anew(store.withdraw),
    claim: anew(store.claim),
    endAttempt: anew(store.endAttempt),
    save: anew(store.save),
    moveOut: anew(store.moveOut),
    moveBack: anew(store.moveBack),
    moveIn: anew(store.moveIn),
  };
}

/** A rescue folder, by default one of its own, removed after the test. */
export function openTestRescue(folder = quickFolder()) {
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const owner = { host: 'test', pid: process.pid, lives: () => true };
  const directory = { directory: folder, sealer: createSealer([]), owner };
  const rescue = openRescue(directory, pino({ level: 'silent' }));
  onTestFinished(() => rescue.close());
  return { rescue, ...directory };
}

export interface IssuedSet {
  name: string;
  access_token: string;
  refresh_token: string;
  expires_in: number;
  refresh_token_expires_in: number;
  token_type: string;
}

export interface Exchange {
  readonly refreshToken: string;
  /** Whether the service spent the refresh token, and whether it answered. */
  outcome: 'answered' | 'spent in silence' | 'refused' | 'not processed';
}

export interface ExchangeScript {
  /** Processes the exchange as the service does, without an answer: undefined for an invalid grant. */
  process(): IssuedSet | undefined;
  /** Processes and answers, as the service does. */
  honestly(): void;
  readonly response: ServerResponse;
}

/** How one exchange is answered. */
export type TokenAnswer = (script: ExchangeScript) => void | Promise<void>;

/** A recruiting service that follows a script, and answers honestly after its end. */
export interface ScriptedService {
  readonly url: string;
  readonly tokenLink: string;
  readonly exchanges: readonly Exchange[];
  readonly secrets: ReadonlySet<string>;
  readonly linkReads: number;
  /** The pair of the last answered exchange. */
  readonly lastAnswered: IssuedSet | undefined;
  /** Sets the answers to the next exchanges, in order of arrival. */
  next(...answers: TokenAnswer[]): void;
  /** Sets the answer to all exchanges. */
  always(answer: TokenAnswer): void;
  /** All exchanges are answered honestly again. */
  honestly(): void;
  /** The refusal of every request to /graphql; undefined: none. */
  refuse(refusal: { status: number; detail: string } | undefined): void;
  /** The answer of a proxy or firewall to every /auth_check; undefined: the service answers. */
  checkAnswers(answer: { status: number; body: string } | undefined): void;
  /** Connections are refused. */
  down(): Promise<void>;
  up(): Promise<void>;
  /** Makes all access tokens so far expire. */
  expire(): void;
  /** An administrator makes a new token, which ends earlier ones. Returns its link. */
  makeNewSet(): string;
}

export async function startScripted(): Promise<ScriptedService> {
  const schema = personsSchema(new PersonList(3), 'keyset');
  const secrets = new Set<string>();
  const exchanges: Exchange[] = [];
  const live = new Set<string>();
  const expired = new Set<string>();
  const script: TokenAnswer[] = [];
  let always: TokenAnswer | undefined;
  let refusal: { status: number; detail: string } | undefined;
  let checkAnswer: { status: number; body: string } | undefined;
  let lastAnswered: IssuedSet | undefined;
  let linkReads = 0;
  let linkDead = false;
  let linkPath = `/links/${madeUp()}`;
  let current = issue();

  const server = createServer((request, response) => {
    respond(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  const url = `http://127.0.0.1:${await listenForTest(server, '127.0.0.1')}`;

  return {
    url,
    get tokenLink() {
      return url + linkPath;
    },
    exchanges,
    secrets,
    get linkReads() {
      return linkReads;
    },
    get lastAnswered() {
      return lastAnswered;
    },
    next: (...answers) => void script.push(...answers),
    always: (answer) => void (always = answer),
    honestly: () => {
      script.length = 0;
      always = undefined;
    },
    refuse: (with_) => void (refusal = with_),
    checkAnswers: (answer) => void (checkAnswer = answer),
    down: () => closed(server),
    up: () =>
      new Promise((resolve) => void server.listen(Number(new URL(url).port), '127.0.0.1', resolve)),
    expire: () => {
      for (const token of live) expired.add(token);
      live.clear();
    },
    makeNewSet: () => {
      linkPath = `/links/${madeUp()}`;
      linkDead = false;
      current = issue();
      return url + linkPath;
    },
  };

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === '/oauth/token') return answerExchange(request, response);
    if (request.url === '/graphql') return answerGraphql(request, response);
    if (request.url === '/auth_check') return answerAuthCheck(request, response);
    if (request.url !== linkPath || linkDead) return json(response, 404, { errors: [] });
    linkReads += 1;
    return json(response, 200, { ...current, created_at: 1 });
  }

  async function answerExchange(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refreshToken = new URLSearchParams(await textOf(request)).get('refresh_token') ?? '';
    const exchange: Exchange = { refreshToken, outcome: 'not processed' };
    exchanges.push(exchange);
    const process = () => {
      if (refreshToken !== current.refresh_token) {
        exchange.outcome = 'refused';
        return undefined;
      }
      exchange.outcome = 'spent in silence';
      linkDead = true;
      current = issue();
      return current;
    };
    const honestly = () => {
      const set = process();
      if (!set) return json(response, 400, { error: 'invalid_grant', error_description: 'Spent.' });
      exchange.outcome = 'answered';
      lastAnswered = set;
      json(response, 200, set);
    };
    const answer = script.shift() ?? always;
    await (answer ? answer({ process, honestly, response }) : honestly());
  }

  async function answerGraphql(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = JSON.parse(await textOf(request)) as {
      query: string;
      variables?: Record<string, unknown>;
    };
    const { status, detail } = refusal ?? judge(bearerOf(request.headers.authorization));
    if (status !== 200) return json(response, status, { type: 'invalid_token', detail });
    const { query, variables } = body;
    return json(response, 200, await graphql({ schema, source: query, variableValues: variables }));
  }

  function answerAuthCheck({ headers }: IncomingMessage, response: ServerResponse): void {
    if (checkAnswer) return void response.writeHead(checkAnswer.status).end(checkAnswer.body);
    const { status, detail } = refusal ?? judge(bearerOf(headers.authorization));
    if (status === 200) return void response.writeHead(204).end();
    json(response, status, { type: 'invalid_token', detail });
  }

  function judge(token: string): { status: number; detail: string } {
    if (live.has(token)) return { status: 200, detail: '' };
    return { status: 401, detail: expired.has(token) ? 'token_expired' : 'token_invalid' };
  }

  function issue(): IssuedSet {
    const set = {
      name: 'Scripted',
      access_token: madeUp(),
      refresh_token: madeUp(),
      expires_in: 86_400,
      refresh_token_expires_in: 10_368_000,
      token_type: 'bearer',
    };
    live.add(set.access_token);
    secrets.add(set.access_token).add(set.refresh_token).add(linkPath);
    return set;
  }
}

async function closed(server: ReturnType<typeof createServer>): Promise<void> {
  const closing = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closing;
}

/** Answers without processing anything. */
export function reply(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): TokenAnswer {
  return ({ response }) => {
    if (typeof body !== 'string') return json(response, status, body, headers);
    response.writeHead(status, headers).end(body);
  };
}

/** Cuts the connection after the request was read, before or after the service processed it. */
export function drop(when: 'unprocessed' | 'processed'): TokenAnswer {
  return ({ process, response }) => {
    if (when === 'processed') process();
    response.destroy();
  };
}

/** Answers honestly after a delay. */
export function held(): { answer: TokenAnswer; arrived: Promise<void>; release: () => void } {
  const arrived = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const answer: TokenAnswer = async ({ honestly }) => {
    arrived.resolve();
    await gate.promise;
    honestly();
  };
  return { answer, arrived: arrived.promise, release: gate.resolve };
}

/** Refresh tokens that were sent again after the answer that spent them. */
export function sentAgain(exchanges: readonly Exchange[]): string[] {
  const spent = new Set<string>();
  return exchanges.flatMap(({ refreshToken, outcome }) => {
    const again = spent.has(refreshToken);
    if (outcome === 'answered') spent.add(refreshToken);
    return again ? [refreshToken] : [];
  });
}

export function codesOf({
  errors = [],
}: {
  errors?: readonly Pick<GraphQLError, 'extensions'>[];
}): unknown[] {
  return errors.map(({ extensions }) => extensions['code']);
}

export function json(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response
    .writeHead(status, { 'content-type': 'application/json', ...headers })
    .end(JSON.stringify(body));
}

function bearerOf(authorization = ''): string {
  return authorization.replace(/^Bearer /, '');
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

function madeUp(): string {
  return `planted-${randomBytes(24).toString('base64url')}`;
}
