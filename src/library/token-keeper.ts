import { hostname } from 'node:os';
import process from 'node:process';
import pino, { type Logger } from 'pino';
import { systemClock } from '../clock.ts';
import { isSecureUrl, readStoreAddress } from '../config/values.ts';
import { OperatorMistake } from '../errors.ts';
import { openCustody } from '../setup/custody.ts';
import type { TokenHealth } from '../tokens/health.ts';
import { TokenKeeper as Keeper, type AccessToken } from '../tokens/keeper.ts';
import { LONGEST_LIFE, readPair } from '../tokens/pair.ts';
import { exchangeAt, proxyAgent, type ClientCredentials } from '../tokens/service.ts';
import type { Imported } from '../tokens/state.ts';

export type { AccessToken, ClientCredentials, Imported, TokenHealth };

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
   * A folder on a disk that outlives the process, for a pair that cannot be saved yet. Default: that of the SQLite file, or
   * `data/rescue`.
   */
  readonly rescueFolder?: string;
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
   * @param replays how often this request was already sent again
   * @throws an error with `extensions.code`: TOKENS_LOST, UPSTREAM_UNAUTHORIZED if the service refuses the client, or for
   *   now UPSTREAM_UNREACHABLE, or INTERNAL_SERVER_ERROR if the store fails
   */
  afterRefusal(refused: AccessToken, replays?: number): Promise<AccessToken | undefined>;
  /**
   * `fetch` with the access token, to any address: send it only to services that may see it. It waits for a token,
   * 30 s at most, whatever the signal of the request says. A request that is answered with 401 is sent again with another
   * token, at most three times. The 401 is returned if there is none, or if the keeper was closed.
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
  /** Begins no exchange any more, and waits until the newest pair is safe. Call nothing after it. */
  close(): Promise<void>;
}

/** Lifetimes in seconds where the answers have none. A refresh token has no end then. */
const LIFETIMES = { accessToken: 3_600, refreshToken: LONGEST_LIFE };

/**
 * Opens the store and keeps its tokens alive. A store without tokens waits for `import`, of this process or another.
 *
 * @throws Error for the operator: an option is wrong, or the store cannot be opened, or belongs to another endpoint. A
 *   store that is only unavailable is no error here, such as a database server that is down: it is read again later
 */
export async function createTokenKeeper(options: TokenKeeperOptions): Promise<TokenKeeper> {
  const { client, fields = {}, keys: tokenStoreKeys = [], rescueFolder } = options;
  const { log = pino({ level: 'warn' }, pino.destination(2)) } = options;
  if (!isSecureUrl(options.endpoint)) throw new OperatorMistake(NO_ENDPOINT);
  const endpoint = new URL(options.endpoint);
  const tokenStore = readStoreAddress(options.store);
  if (!tokenStore) throw new OperatorMistake(NO_STORE);
  const custody = openCustody({ tokenStore, tokenStoreKeys, tokenRescueDir: rescueFolder });
  const http = proxyAgent(process.env);
  const exchange = exchangeAt({
    url: endpoint,
    http,
    client,
    fields,
    mayKeepToken: true,
    lifetimes: LIFETIMES,
    settings: '`endpoint`, `client`, `fields`',
  });
  const keeper = new Keeper({
    ...custody,
    service: { exchange },
    serviceUrl: endpoint.href,
    by: `${hostname()}/${process.pid}`,
    clock: systemClock,
    log,
  });
  await keeper.open();
  const token = async () => keeper.token();
  const afterRefusal = (refused: AccessToken, replays = 0) =>
    keeper.afterRefusal(refused, '', replays);
  return {
    token,
    afterRefusal,
    fetch: async (input, init) => {
      // It may be sent again, and its body read again, which a copy keeps.
      const original = new Request(input, init);
      let current = await token();
      for (let replays = 0; ; replays += 1) {
        const request = original.clone();
        request.headers.set('authorization', `Bearer ${current.value}`);
        const response = await fetch(request);
        const isRefused = response.status === 401;
        const other = isRefused ? await afterRefusal(current, replays) : undefined;
        if (!other) {
          keeper[isRefused ? 'refused' : 'accepted'](current);
          return response;
        }
        await response.body?.cancel();
        current = other;
      }
    },
    import: async (answer, { replace = false } = {}) => {
      const pair = readPair(answer, undefined, LIFETIMES);
      if (!pair) throw new OperatorMistake(NO_PAIR);
      return keeper.import(pair, replace);
    },
    health: () => keeper.health(),
    close: async () => {
      await keeper.close();
      await http.destroy();
    },
  };
}

const NO_ENDPOINT =
  'The endpoint must begin with https:// (http:// is allowed only for this machine).';

const NO_STORE =
  'The store must be sqlite:<file> or postgres://<user>:<password>@<host>/<database>.';

const NO_PAIR =
  'What was imported is not the answer of a token endpoint: an object with access_token and refresh_token. Nothing was changed.';
