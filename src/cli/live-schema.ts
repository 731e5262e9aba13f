import { systemClock } from '../clock.ts';
import { createLog } from '../telemetry/log.ts';
import type { Execute } from '../schema/live/introspect.ts';
import type { StoredTokens, TokenStore } from '../tokens/store/token-store.ts';
import type { BearerTokens } from '../upstream/retry.ts';
import { noTelemetry } from '../upstream/telemetry.ts';
import { createServiceExecutor } from '../upstream/executor.ts';
import { CommandError, type Terminal } from './terminal.ts';
import { noTokens, withTokenStore } from './token-session.ts';

/**
 * Asks the service about its schema with the access token of the store. It never refreshes: a gateway may hold the
 * claim, and reading a schema is not worth a refresh token.
 *
 * @param ask gets what sends requests, and the host of the service
 * @throws Error with a message for the operator
 */
export async function askService<Answer>(
  terminal: Terminal,
  timeoutMs: number,
  ask: (execute: Execute, service: string) => Promise<Answer>,
): Promise<Answer> {
  return withTokenStore(terminal, 'inspect', async (session) => {
    const { stored, store, config } = session;
    if (!stored) throw await noTokens(session);
    const { baseUrl } = stored;
    const log = await createLog({
      level: terminal.env['LOG_LEVEL'] === undefined ? 'silent' : config.logLevel,
      json: false,
      colors: false,
      destination: terminal.stderr,
    });
    const upstream = createServiceExecutor({
      baseUrl,
      agent: config.agent,
      proxy: terminal.proxyFor(baseUrl),
      concurrency: 1,
      timeoutMs,
      tokens: tokensOf(store, stored),
      clock: systemClock,
      telemetry: {
        ...noTelemetry,
        retrying: (_cause, code, attempt) =>
          log.debug({ code, attempt }, 'sending a request again'),
      },
    });
    try {
      return await ask(upstream.execute, new URL(baseUrl).host);
    } catch (error) {
      throw terminal.stop.aborted
        ? new CommandError('Stopped before the service answered.')
        : error;
    } finally {
      await upstream.close();
    }
  });
}

interface StoredToken {
  readonly value: string;
  readonly generation: number;
}

/** The tokens in the store, which a gateway may refresh at any moment. */
function tokensOf(store: TokenStore, stored: StoredTokens): BearerTokens<StoredToken> {
  let newest = tokenOf(stored);
  return {
    accessToken: async () => newest,
    accepted: () => {},
    afterRefusal: async (refused, detail) => {
      newest = tokenOf((await store.read()) ?? stored);
      if (newest.generation !== refused.generation) return newest;
      if (detail !== 'token_expired') return undefined;
      throw new CommandError(
        'The access token has expired. Run `tokens refresh`; a running gateway does it by itself.',
      );
    },
  };
}

function tokenOf({ pair: { accessToken }, generation }: StoredTokens): StoredToken {
  return { value: accessToken, generation };
}
