import type { Logger } from 'pino';
import { createAnswerBudget } from './answers/budget.ts';
import type { Clock } from './clock.ts';
import { VERSION, type Config } from './config.ts';
import { maskUnexpected } from './http/execution/error-policy.ts';
import { createRefusals } from './http/execution/refusals.ts';
import type { Stage } from './http/exchange/exchange.ts';
import { createHandler } from './http/exchange/handler.ts';
import { examples } from './http/graphiql-examples.ts';
import { graphiql } from './http/graphiql.ts';
import { answerOperation } from './http/operation/answer-operation.ts';
import { checkOperations } from './http/operation/check-operation.ts';
import { readParams } from './http/operation/read-params.ts';
import { trustedDocuments } from './http/operation/trusted.ts';
import { createOrigin } from './http/origin/origin.ts';
import { health, knownPaths, readiness } from './http/paths.ts';
import { createOperations } from './operations/operations.ts';
import { readTrustedDocuments } from './operations/trusted-documents.ts';
import { createPlanner } from './plans/planner.ts';
import { describeLists } from './schema/describe-lists.ts';
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
    tokens: () => tokens?.standing(),
    upstreamLoad: () => upstream.load,
    drainLoad: () => planner.drainLoad,
    answerLoad: () => budget.load,
  });
  const { log, metrics } = watching;
  // First what may fail, so that nothing is running yet when it does.
  const snapshot = readSnapshot(parts.snapshot, config.schemaPath);
  const served = createServedSchema({
    ...config,
    snapshot,
    overrides: parts.overrides,
    prefix: config.schemaPrefix,
  });
  const budget = createAnswerBudget(config.answerBytes, clock);
  const planner = createPlanner({
    ...config,
    served,
    send: (request, sender) => upstream.send({ ...request, ...sender }),
    watch: watching.reading,
    budget,
    drains: { ...config, clock, tokenSet: () => tokens?.set },
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
  const isRouter = admission?.isRouter ?? (() => false);
  const trusted =
    parts.trustedDocuments === undefined
      ? undefined
      : trustedDocuments(
          readTrustedDocuments(parts.trustedDocuments, { ...config, schema: served.schema }),
          { only: config.trustedDocumentsOnly, isRouter },
        );
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
    execute: (request) => upstream.send({ ...request, caller: 'gateway', cause: undefined }),
    clock,
    log,
    onChecked: metrics.schemaLookedAt,
  });
  for (const warning of served.warnings) log.warn(warning);
  const origin = createOrigin(config, log);
  const mask = maskUnexpected(log);
  const operation = checkOperations({
    ...config,
    operations: createOperations({ ...config, schema: served.schema, compile: planner.plan }),
    schema: served.schema,
    isRouter,
    answer: answerOperation({ planner, mask }),
  });
  const refusals = createRefusals({ schema: served.schema, mask });
  let stopping = false;
  const handler = createHandler({
    telemetry: watching.requests,
    stages: [
      // Whatever answers, a page of a listed origin may read it.
      origin.corsHeaders,
      origin.knownHosts,
      health,
      readiness(() => tokens.present && !stopping),
      knownPaths,
      // Browsers send neither of these with a credential.
      origin.preflights,
      graphiql({ enabled: config.graphiql, examples: examples(describeLists(served.adapters)) }),
      // Nothing is read of the body of a stranger, or of the page of another site.
      admission?.authenticate ?? passOn,
      origin.crossSite,
      readParams(config.maxBodyBytes),
      trusted ?? passOn,
      operation.find,
      // Both before validation: it is expensive, and what it says gives the schema away.
      operation.enforceLimits,
      admission?.enforceScopes ?? passOn,
      operation.concealSdl,
      operation.refuseInvalid,
      operation.coerceVariables,
      origin.findPayer,
      operation.answer,
      refusals.notAcceptable,
    ],
    refuse: refusals.refuse,
    mask,
    clock,
  });

  return {
    /** Answers requests: as a `fetch`, or as the handler of a Node server. */
    handler,
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

const passOn: Stage = () => undefined;
