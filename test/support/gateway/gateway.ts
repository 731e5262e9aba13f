import type { ExecutionResult } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { systemClock, type Clock } from '../../../src/clock.ts';
import { readConfig, type Config } from '../../../src/config.ts';
import { createGateway } from '../../../src/gateway.ts';
import { keeperParts } from '../../../src/setup/custody.ts';
import { NO_EMERGENCY } from '../../../src/tokens/emergency.ts';
import type { TokenStore } from '../../../src/tokens/store.ts';
import type { Additions } from '../../../src/additions/additions.ts';
import { documentedSdl } from '../documented-sdl.ts';
import { post } from '../clients/post.ts';
import { samplesOf } from '../processes/exposition.ts';
import { recordingLog } from './recording-log.ts';
import { servedOnce } from './served.ts';
import { memoryStore } from './stores.ts';
import { wrote } from './written.ts';

export interface TestGateway extends AsyncDisposable {
  /** Sends an operation through the server's fetch, and returns the GraphQL answer. */
  ask<Data = Record<string, never>>(
    query: string,
    variables?: Record<string, unknown>,
    init?: RequestInit,
  ): Promise<Answer<Data>>;
  /** Sends any request through the server's fetch. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** The value of each series of its metrics. */
  samples(): Promise<Map<string, number>>;
  readonly gateway: Awaited<ReturnType<typeof createGateway>>;
  readonly store: TokenStore;
  /** Everything that was logged, as parsed JSON lines. */
  readonly logged: Record<string, unknown>[];
}

export interface Answer<Data> extends Omit<ExecutionResult, 'data'> {
  data: Data;
}

export interface TestGatewayOptions {
  config?: Partial<Config>;
  snapshot?: string;
  /** Whether the gateway makes its own served schema. Default: gateways share one. */
  ownSchema?: boolean;
  /** The content of adapters.json. */
  overrides?: unknown;
  /** What a company adds to the schema. */
  additions?: Additions;
  /** The content of the manifest of trusted documents. */
  trustedDocuments?: unknown;
  clock?: Clock;
  store?: TokenStore;
  plugins?: readonly Plugin[];
  /** The environment variables that name proxies. */
  proxies?: Readonly<Record<string, string>>;
}

/** A gateway in front of the given upstream; its tokens stay in memory. */
export async function startGateway(
  upstream: { url: string; tokenLink?: string },
  {
    config,
    snapshot = documentedSdl,
    ownSchema = false,
    overrides,
    additions,
    trustedDocuments,
    clock = systemClock,
    store = memoryStore(),
    plugins = [],
    proxies = {},
  }: TestGatewayOptions = {},
): Promise<TestGateway> {
  const { log, logged } = recordingLog();
  // No proxies, and a process that the audit trail of the tokens calls `gateway/1`.
  const env = {};
  const settings = {
    ...readConfig({}, 'server'),
    // Tests send more than a caller may.
    pagesPerMinute: 0,
    recruitingUrl: upstream.url,
    tokenLink: upstream.tokenLink,
    ...config,
  } as Config & { recruitingUrl: string };
  const serviceUrl = settings.recruitingUrl;
  const gateway = await createGateway({
    config: settings,
    snapshot,
    served: ownSchema ? undefined : servedOnce(snapshot, settings, overrides),
    overrides,
    additions,
    trustedDocuments,
    tokens: keeperParts(settings, {
      store,
      emergency: NO_EMERGENCY,
      serviceUrl,
      env,
      clock,
      log,
    }),
    plugins,
    proxies,
    clock,
    log,
  });
  const fetch = async (path: string, init?: RequestInit) =>
    gateway.handler.fetch(new Request(`http://localhost${path}`, init));
  return {
    gateway,
    store,
    logged,
    fetch,
    samples: async () => samplesOf(await gateway.metrics.metrics()),
    ask: async (query, variables, init) => {
      const response = await fetch('/graphql', {
        ...init,
        ...post(
          { query, variables },
          { accept: 'application/json', ...Object.fromEntries(new Headers(init?.headers)) },
        ),
      });
      return JSON.parse(wrote(await response.text()));
    },
    [Symbol.asyncDispose]: async () => {
      wrote(await gateway.metrics.metrics());
      wrote(JSON.stringify((await store.read()).state?.events));
      await gateway.close();
    },
  };
}
