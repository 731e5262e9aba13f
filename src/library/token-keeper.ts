import { hostname } from 'node:os';
import { dirname, resolve } from 'node:path';
import process from 'node:process';
import pino, { type Logger } from 'pino';
import { systemClock } from '../clock.ts';
import { isSecureUrl, readStoreAddress } from '../config/values.ts';
import { codedError, OperatorError, OperatorMistake } from '../errors.ts';
import { emergencyIn, type Emergency } from '../tokens/emergency.ts';
import { storeProblem } from '../tokens/errors.ts';
import type { TokenHealth } from '../tokens/health.ts';
import { openTokenKeeper, type AccessToken } from '../tokens/keeper.ts';
import { LONGEST_LIFE, readPair, type Lifetimes } from '../tokens/pair.ts';
import { openPostgresStore } from '../tokens/postgres.ts';
import { createSealer, type Sealer } from '../tokens/seal.ts';
import { exchangeAt, proxyAgent, type ClientCredentials } from '../tokens/service.ts';
import { openSqliteStore } from '../tokens/sqlite.ts';
import type { Imported } from '../tokens/state.ts';
import type { TokenStore } from '../tokens/store.ts';

export type { AccessToken, ClientCredentials, Imported, Lifetimes, TokenHealth };

export interface TokenKeeperOptions {
  /** The token endpoint (RFC 6749, 3.2). HTTPS, or HTTP on this machine. The store belongs to this address. */
  readonly endpoint: string;
  /** How the client names itself. Default: not at all. */
  readonly client?: ClientCredentials;
  /** Further fields of the form, such as `scope` or `audience`. */
  readonly fields?: Readonly<Record<string, string>>;
  /**
   * `sqlite:<file>` for all processes on one machine, `postgres://<user>:<password>@<host>/<database>` for any number of
   * machines. A store holds one token set.
   */
  readonly store: string;
  /** Encrypt the store: 32 bytes each, the newest first. Default: not encrypted. */
  readonly keys?: readonly Uint8Array[];
  /**
   * A folder on a disk that outlives the process, for a pair that cannot be saved yet. Default: that of the SQLite file;
   * PostgreSQL needs one.
   */
  readonly rescueFolder?: string;
  /** Whether an answer without a new refresh token is normal (RFC 6749, 6). Otherwise it is logged. Default: true */
  readonly mayKeepToken?: boolean;
  /** Lifetimes in seconds, where the answers have none. Default: an hour, and a refresh token without an end. */
  readonly lifetimes?: Partial<Lifetimes>;
  /** Whether the `WWW-Authenticate` header of a 401 reports an expired access token. Default: each one may. */
  readonly meansExpired?: (challenge: string) => boolean;
  /** Sends the requests of `fetch`. Default: the global one. */
  readonly fetch?: typeof fetch;
  /** Default: warnings and errors on the standard error. */
  readonly log?: Logger;
}

/** Keeps one rotating, single-use refresh token for all processes that share a store. */
export interface TokenKeeper {
  /** The newest access token. @throws an error with `extensions.code`: TOKENS_MISSING without one */
  token(): Promise<AccessToken>;
  /**
   * The token to send a request again with after a 401, or undefined if no other token would help.
   *
   * @param challenge the `WWW-Authenticate` header of the 401
   * @param replays how often this request was already sent again
   * @throws an error with `extensions.code`: TOKENS_LOST, UPSTREAM_UNAUTHORIZED if the service refuses the client, or for
   *   now UPSTREAM_UNREACHABLE, or INTERNAL_SERVER_ERROR if the store fails
   */
  afterRefusal(
    refused: AccessToken,
    challenge?: string,
    replays?: number,
  ): Promise<AccessToken | undefined>;
  /**
   * `fetch` with the access token, to any address: send it only to services that may see it. It waits for a token until
   * the signal of the request is aborted, 30 s at most. A request that is answered with 401 is sent again with another
   * token, at most three times. The 401 is returned if there is none, if the keeper was closed, or if the body is a stream,
   * which can be sent only once; the next request then has the new token.
   *
   * @throws the errors of `token` and `afterRefusal`
   */
  readonly fetch: typeof fetch;
  /**
   * Stores the JSON of a token endpoint's answer, and exchanges its refresh token at once: its age is unknown. If the
   * service gives no new pair now, that goes on later.
   *
   * @param options.replace whether it may replace tokens that are in use. Default: false
   * @returns `known`: this store has already seen the refresh token, which is in use or spent. `in use`: nothing was
   *   replaced
   * @throws an error with `extensions.code`: TOKENS_LOST if the service refuses the refresh token. UPSTREAM_UNAUTHORIZED
   *   if it refuses the client: then the pair is stored, and exchanged once the client is accepted
   */
  import(
    answer: Readonly<Record<string, unknown>>,
    options?: { readonly replace?: boolean },
  ): Promise<Imported>;
  /** What is wrong, if anything, and the times left in seconds. Reads neither the store nor the service. */
  health(): TokenHealth;
  /**
   * Begins no exchange any more, and waits until the newest pair is safe. The other methods, but `health`, reject from then
   * on with the code UPSTREAM_UNREACHABLE.
   */
  close(): Promise<void>;
}

const HOUR = 3_600;

/**
 * Opens the store and keeps its tokens alive. A store without tokens waits for `import`, of this process or another.
 *
 * @throws Error for the operator: an option is wrong. With `extensions.code` INTERNAL_SERVER_ERROR: the store cannot be
 *   opened, or belongs to another endpoint. A database server that is down is no error here: it is asked again later
 */
export async function createTokenKeeper(options: TokenKeeperOptions): Promise<TokenKeeper> {
  const { client, fields = {}, mayKeepToken = true, keys = [], meansExpired } = options;
  const { log = pino({ level: 'warn' }, pino.destination(2)), fetch: send = fetch } = options;
  const { endpoint, path, postgres, rescueFolder } = checked(options);
  const lifetimes = { accessToken: HOUR, refreshToken: LONGEST_LIFE, ...options.lifetimes };
  const sealer = createSealer(keys);
  const emergency = emergencyIn(rescueFolder, sealer);
  const store = await openStore({ path, postgres, sealer, emergency });
  const http = proxyAgent(process.env);
  const keeper = await openTokenKeeper({
    store,
    service: {
      exchange: exchangeAt({
        url: endpoint,
        http,
        client,
        fields,
        mayKeepToken,
        lifetimes,
        settings: '`endpoint`, `client`, `fields`',
      }),
    },
    emergency,
    serviceUrl: endpoint.href,
    by: `${hostname()}/${process.pid}`,
    clock: systemClock,
    log,
    ...(meansExpired && { meansExpired }),
  }).catch(async (error: unknown) => {
    await store.close();
    throw unusable(error, store);
  });
  let closed: Promise<void> | undefined;
  const whileOpen = <T>(work: () => Promise<T>): Promise<T> =>
    closed ? Promise.reject(codedError('UPSTREAM_UNREACHABLE', CLOSED)) : awake(work);
  const token = () => whileOpen(async () => keeper.token());
  const afterRefusal: TokenKeeper['afterRefusal'] = (refused, challenge = '', replays = 0) =>
    whileOpen(() => keeper.afterRefusal(refused, challenge, replays));
  return {
    token,
    afterRefusal,
    fetch: async (input, init) => {
      const isStream = isSentOnce(input) || isSentOnce(init);
      const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
      let current = await unlessAborted(signal, token());
      for (let replays = 0; ; replays += 1) {
        const request = new Request(input, init);
        request.headers.set('authorization', `Bearer ${current.value}`);
        const response = await send(request);
        if (response.ok) keeper.accepted(current);
        if (response.status !== 401 || closed) return response;
        const challenge = response.headers.get('www-authenticate') ?? '';
        const other = await unlessAborted(signal, afterRefusal(current, challenge, replays));
        if (!other) keeper.refused(current);
        if (!other || isStream) return response;
        await response.body?.cancel();
        current = other;
      }
    },
    import: async (answer, { replace = false } = {}) => {
      const pair = readPair(answer, undefined, lifetimes);
      if (!pair) throw new OperatorMistake(NO_PAIR);
      return whileOpen(() => keeper.import(pair, replace));
    },
    health: () => keeper.health(),
    close: () =>
      (closed ??= awake(async () => {
        await keeper.close();
        await store.close();
        await http.close();
      })),
  };
}

const CLOSED = 'The token keeper is closed, so nothing was sent. Create another one.';

/** A file or folder that cannot be opened is a mistake; a database server may only be down. */
async function openStore(parts: {
  readonly path: string | undefined;
  readonly postgres: string | undefined;
  readonly sealer: Sealer;
  readonly emergency: Emergency;
}): Promise<TokenStore> {
  const { path = '', postgres, sealer, emergency } = parts;
  const server = postgres === undefined ? undefined : openPostgresStore(postgres, sealer);
  try {
    const store = server ?? openSqliteStore(path, sealer);
    if (!server) await store.read();
    emergency.read();
    return store;
  } catch (error) {
    await server?.close();
    throw unusable(error, server ?? { description: `sqlite:${path}` });
  }
}

function unusable(error: unknown, store: Pick<TokenStore, 'description'>): OperatorError {
  const { message } = storeProblem(error, store);
  return forProgram(
    new OperatorError('INTERNAL_SERVER_ERROR', message, { needsOperator: true, cause: error }),
  );
}

/** A program that waits changes nothing about what only people can correct. */
function forProgram<T>(error: T): T {
  if (error instanceof OperatorError && error.forCallers.needsOperator) {
    delete error.extensions['retryAfter'];
  }
  return error;
}

/** The timers of a keeper let an idle process end, but not one that waits for a token. */
async function awake<T>(work: () => Promise<T>): Promise<T> {
  const timer = setInterval(() => {}, 2 ** 30);
  try {
    return await work();
  } catch (error) {
    throw forProgram(error);
  } finally {
    clearInterval(timer);
  }
}

/** Only the waiting ends with the signal: an exchange belongs to the process. */
async function unlessAborted<T>(signal: AbortSignal | undefined, waited: Promise<T>): Promise<T> {
  if (!signal) return waited;
  const left = Promise.withResolvers<never>();
  const leave = () => left.reject(signal.reason as Error);
  if (signal.aborted) leave();
  signal.addEventListener('abort', leave);
  try {
    return await Promise.race([left.promise, waited]);
  } finally {
    signal.removeEventListener('abort', leave);
  }
}

const NO_PAIR =
  'What was imported is not the answer of a token endpoint: an object with access_token and refresh_token. Nothing was changed.';

/** Whether the body of a request is a stream. A `Request` holds every body as one. */
function isSentOnce(of: RequestInfo | URL | RequestInit | undefined): boolean {
  const body = typeof of === 'object' && 'body' in of ? of.body : undefined;
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}

function checked({ endpoint, store, rescueFolder }: TokenKeeperOptions) {
  if (!isSecureUrl(endpoint)) {
    throw new OperatorMistake(
      'The endpoint must begin with https:// (http:// is allowed only for this machine).',
    );
  }
  const address = readStoreAddress(store);
  if (!address) {
    throw new OperatorMistake(
      'The store must be sqlite:<file> or postgres://<user>:<password>@<host>/<database>.',
    );
  }
  const path = address.kind === 'sqlite' ? resolve(address.path) : undefined;
  const folder = rescueFolder ?? (path && dirname(path));
  if (folder === undefined) {
    throw new OperatorMistake(
      'With PostgreSQL, rescueFolder must name a folder on a disk that outlives the process: a pair waits there until it is saved.',
    );
  }
  const postgres = address.kind === 'postgres' ? address.url : undefined;
  return { endpoint: new URL(endpoint), path, postgres, rescueFolder: resolve(folder) };
}
