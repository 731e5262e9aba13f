import {
  createYoga,
  useExecutionCancellation,
  useReadinessCheck,
  type YogaInitialContext,
} from 'graphql-yoga';
import type { Logger } from 'pino';
import type { Clock } from './clock.ts';
import { VERSION, type Config } from './config.ts';
import { callerSignal } from './http/caller-signal.ts';
import { checkOperationName } from './http/check-operation-name.ts';
import { answerWhateverHappens } from './http/answer-whatever-happens.ts';
import { appendSurplusErrors } from './http/append-surplus-errors.ts';
import { closeUnread } from './http/close-unread.ts';
import { codeRefusedRequests, maskUnexpected } from './http/error-policy.ts';
import { createFrontDoor } from './http/front-door/front-door.ts';
import { remoteAddress, type ServerContext } from './http/front-door/remote-address.ts';
import { examples } from './http/graphiql-examples.ts';
import { graphiql } from './http/graphiql.ts';
import { health, NO_ADDRESS } from './http/health.ts';
import { introspection } from './http/introspection.ts';
import { knownPaths } from './http/known-paths.ts';
import { incrementalDelivery } from './http/incremental-delivery.ts';
import { guardOperations } from './http/operations/guard-operations.ts';
import { payerOf } from './http/payer.ts';
import { requestFormat } from './http/request-format.ts';
import { reservedNames } from './http/reserved-names.ts';
import { createContext } from './schema/create-context.ts';
import { describeLists } from './schema/describe-lists.ts';
import { createIncrementalExecution } from './schema/streaming/execution.ts';
import { createServedSchema } from './schema/served-schema.ts';
import { watchLiveSchema } from './schema/live/watch-live-schema.ts';
import { readSnapshot } from './schema/snapshot.ts';
import { authCheck } from './tokens/service/auth-check.ts';
import { tokenEndpoint } from './tokens/service/exchange.ts';
import type { Rescue } from './tokens/store/rescue.ts';
import { createTokenKeeper } from './tokens/token-keeper.ts';
import { tokenLinkAt } from './tokens/service/token-link.ts';
import type { TokenStore } from './tokens/store/token-store.ts';
import { createUpstream } from './upstream/upstream.ts';
import { createWatching } from './watching/watching.ts';

export interface GatewayParts {
  readonly config: Config & { readonly recruitingUrl: string };
  /** SDL of the upstream's schema. */
  readonly snapshot: string;
  /** What adapters.json says, as it was read; undefined without one. */
  readonly overrides?: unknown;
  /** What the manifest of trusted documents says, as it was read; undefined without one. */
  readonly trustedDocuments?: unknown;
  /** Owned by the caller: closed after the gateway. */
  readonly store: TokenStore;
  /** Owned by the caller as well; undefined for tokens that need not outlive the process. */
  readonly rescue?: Rescue | undefined;
  /** The proxy for an address, if there is one. */
  readonly proxyFor?: (url: string) => string | undefined;
  /** Names this process in the history of the tokens. */
  readonly replica?: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * The whole way of a request, from the outside in: what arrives (`http`), what is offered (`schema`, over
 * `paging`), what goes out (`upstream`), and who it goes as (`tokens`). Only here are they joined.
 *
 * @throws Error with a message for the operator: a snapshot that does not parse, a store of another service
 */
export async function createGateway(parts: GatewayParts) {
  const { config, store, rescue, clock, replica = 'gateway' } = parts;
  const { recruitingUrl: baseUrl, agent } = config;
  const { proxyFor = () => undefined } = parts;
  const watching = createWatching({
    version: VERSION,
    log: parts.log,
    baseUrl,
    callerOf: (request) => admission?.callerOf(request),
    operationOf: (request) => operations.trustedOperation(request) ?? '',
    tokens: () => tokens?.standing(),
    upstreamLoad: () => upstream.load,
    drainLoad: () => served.drainLoad(),
  });
  const { log, metrics } = watching;
  // First what may fail, so that nothing is running yet when it does.
  const snapshot = readSnapshot(parts.snapshot, config.schemaPath);
  const served = createServedSchema({
    snapshot,
    execute: (request) => upstream.execute(request),
    watch: watching.reading,
    mutations: config.mutations,
    connectionMax: config.connectionMax,
    drainMaxItems: config.drainMaxItems,
    drains: { ...config, clock, tokenSet: () => tokens?.set },
    overrides: parts.overrides,
    prefix: config.schemaPrefix,
  });
  // Loaded where it is wanted: what reads tokens is a part of the start that shows.
  const admission =
    config.auth &&
    (await import('./http/auth/admission.ts')).createAdmission({
      ...config.auth,
      proxyFor,
      clock,
      log,
    });
  const operations = guardOperations({
    ...config,
    manifest: parts.trustedDocuments,
    schema: served.schema,
    isRouter: admission?.isRouter,
  });
  const service = { baseUrl, agent, proxy: proxyFor(baseUrl) };
  const tokens = await createTokenKeeper({
    store,
    rescue,
    connect: tokenEndpoint({ ...service, clock }),
    checkAccess: authCheck(service),
    link:
      config.tokenLink === undefined
        ? undefined
        : tokenLinkAt(config.tokenLink, { agent, proxyFor }),
    clock,
    // Rotations belong to no request.
    log: parts.log,
    baseUrl,
    replica,
    onExchange: watching.exchanged,
  });
  const upstream = createUpstream({
    ...service,
    concurrency: config.upstreamConcurrency,
    fields: Object.keys(snapshot.getQueryType()?.getFields() ?? {}).length,
    timeoutMs: config.upstreamTimeoutMs,
    tokens,
    clock,
    watch: watching.upstream,
  });
  const schemaWatch = watchLiveSchema({
    everySeconds: config.schemaPollSeconds,
    snapshot,
    execute: (request) => upstream.execute(request),
    clock,
    log,
    onLook: metrics.schemaLookedAt,
  });
  for (const warning of served.warnings) log.warn(warning);
  const frontDoor = createFrontDoor(config, log);
  const explorer = graphiql({
    enabled: config.graphiql,
    opensFor: frontDoor.isForUs,
    examples: examples(describeLists(served)),
  });
  const maskError = maskUnexpected(log);
  let stopping = false;
  const yoga = createYoga({
    schema: served.schema,
    context: ({ request, req }: YogaInitialContext & ServerContext) =>
      createContext(served, {
        ...config,
        payer: payerOf(admission?.callerOf(request), remoteAddress({ req }, config.trustProxy)),
        signal: callerSignal(request),
        cause: watching.causeOf(request),
      }),
    graphqlEndpoint: '/graphql',
    healthCheckEndpoint: NO_ADDRESS,
    landingPage: false,
    cors: false,
    multipart: false,
    // What is read of a body is limited in requestFormat, which can still answer when it is too large.
    maxRequestBodySize: false,
    logging: false,
    maskedErrors: { maskError },
    parserAndValidationCache: operations.documentCache,
    graphiql: explorer.graphiql,
    renderGraphiQL: explorer.renderGraphiQL,
    plugins: [
      watching.requests,
      closeUnread(clock),
      frontDoor.knownHosts,
      health,
      knownPaths,
      frontDoor.cors,
      useReadinessCheck({ endpoint: '/ready', check: () => tokens.present && !stopping }),
      explorer.plugin,
      admission?.authenticate ?? {},
      frontDoor.crossSite,
      requestFormat(config.maxBodyBytes),
      operations.trustedDocuments,
      checkOperationName,
      operations.enforceLimits,
      admission?.enforceScopes ?? {},
      reservedNames,
      introspection(config.introspection, admission?.isRouter),
      useExecutionCancellation(),
      incrementalDelivery(createIncrementalExecution(served), maskError),
      appendSurplusErrors,
      codeRefusedRequests,
    ],
  });

  return {
    /** Answers requests: as a `fetch`, or as the handler of a Node server. */
    yoga: answerWhateverHappens(yoga, maskError),
    served,
    metrics,
    /** From now on `/ready` says no; everything else goes on. */
    sayNotReady: () => void (stopping = true),
    /** From now on no rotation is begun; `close` waits for one under way. */
    stopRotating: () => void tokens.stop(),
    /** Ends what goes out, and waits until the pair of a rotation under way is safe. */
    close: async () => {
      await Promise.all([schemaWatch.stop(), tokens.stop()]);
      await upstream.close();
    },
  };
}
