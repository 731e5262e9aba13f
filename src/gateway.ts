import type { Plugin } from 'graphql-yoga';
import type { Logger } from 'pino';
import type { Additions } from './additions/additions.ts';
import { delegateTo } from './additions/delegate.ts';
import { withAdditions } from './additions/with-additions.ts';
import type { Clock } from './clock.ts';
import { VERSION, type Config } from './config.ts';
import { createEngine, type Engine } from './engine/engine.ts';
import { AnswerMemory } from './memory/answer-memory.ts';
import type { Plan } from './engine/plan.ts';
import { authentication } from './http/auth/authentication.ts';
import { createAnswers } from './http/answers.ts';
import { callerAddress } from './http/caller-address.ts';
import { createErrorPolicy } from './http/error-policy.ts';
import { examples } from './http/graphiql/examples.ts';
import type { Stages } from './http/exchange.ts';
import { createGraphiql } from './http/graphiql/graphiql.ts';
import { createHandler } from './http/handler.ts';
import { knownHosts } from './http/hosts.ts';
import { inProcess } from './http/in-process.ts';
import { OperationSteps } from './http/operation.ts';
import { createOrigin } from './http/origin.ts';
import { createReadParams } from './http/params.ts';
import { graphqlOnly, probes } from './http/paths.ts';
import { openYoga } from './http/yoga.ts';
import { ByteLimit } from './memory/byte-limit.ts';
import { createOperations } from './operations/operations.ts';
import { readTrustedDocuments } from './operations/trusted-documents.ts';
import { CallerBudgets } from './paging/page-budget.ts';
import { scopedUsesIn } from './schema/field-scopes.ts';
import { serveSnapshot, type ServedSchema } from './schema/served/served-schema.ts';
import { createTelemetry, type Telemetry } from './telemetry/telemetry.ts';
import type { TokenParts } from './tokens/holder.ts';
import { TokenKeeper } from './tokens/keeper.ts';
import { proxyAgent } from './tokens/service.ts';
import { graphqlToolsExecutor } from './upstream/executor.ts';
import { openUpstream, type SendToService, type Upstream } from './upstream/upstream.ts';

interface GatewayParts extends ServiceParts {
  /** The SDL of the upstream's schema. */
  readonly snapshot: string;
  /** What `serveSnapshot` makes of the snapshot, adapters.json and the settings: tests make it once for many gateways. */
  readonly served?: ServedSchema | undefined;
  /** The parsed adapters.json; undefined without one. */
  readonly overrides?: unknown;
  /** The company's additions to the schema; undefined: none. */
  readonly additions?: Additions | undefined;
  /** The parsed manifest of trusted documents; undefined without one. */
  readonly trustedDocuments?: unknown;
  /** Plugins for Yoga and Envelop, which run inside those of the gateway. */
  readonly plugins?: readonly Plugin[] | undefined;
  /** Set if the built-in sandbox, whose records are made up, replaces the service. */
  readonly isSandbox?: boolean | undefined;
}

/** How the service is reached, and with which tokens. */
interface ServiceParts {
  readonly config: Config & { readonly recruitingUrl: string };
  readonly tokens: TokenParts;
  /** The environment variables that name the proxies. Default: none. */
  readonly proxies?: Readonly<Record<string, string | undefined>> | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

export type Gateway = Awaited<ReturnType<typeof createGateway>>;

/**
 * Connects the parts of the gateway; no other file does. The lists of stages below are the path of a request: read them
 * from top to bottom. Behind them, `steps` reads and checks its operation, and `answers` has its plan answer it (`engine`,
 * over `paging`), which sends requests to the service (`upstream`) with an access token (`tokens`).
 *
 * @throws Error with a message for the operator, for example about an invalid snapshot or the store of another service
 */
export async function createGateway(parts: GatewayParts) {
  const { config, clock, log, proxies = {} } = parts;
  const telemetry = createTelemetry({ version: VERSION, log });

  // What may be invalid comes first, so that nothing is running when it is, and no mistake costs a token exchange.
  // The wrapped schema works by itself: an operation that graphql-js executes over it asks the service.
  const send: SendToService = (request, sender) => upstream.send(request, sender);
  const served =
    parts.served ??
    serveSnapshot(parts.snapshot, config, parts.overrides, graphqlToolsExecutor(send));
  // Added fields ask the schema that they extend. It is asked when it has plans: no operation comes before.
  const offered = withAdditions(served, parts.additions, (request) => answerDelegated(request));
  const authenticate =
    config.auth && (await authentication(config.auth, { http: proxyAgent(proxies), clock, log }));
  const { maxDepth, maxAliases, maxTokens, introspection } = config;
  const limits = { maxDepth, maxAliases, maxTokens, introspection };
  const trusted =
    parts.trustedDocuments === undefined ? undefined : readTrustedDocuments(parts.trustedDocuments);

  const bodies = new ByteLimit(config.requestBytes);
  const { tokens, upstream } = await connectService(parts, telemetry);
  for (const warning of served.warnings) log.warn(warning);

  const memory = new AnswerMemory(config.answerBytes);
  const engine: Engine = createEngine({
    served,
    offered,
    config,
    callers: new CallerBudgets(config.pagesPerMinute, clock),
    send: upstream.send,
    memory,
    clock,
    tokenSet: () => tokens.state?.set,
    telemetry: telemetry.reading({
      drains: () => engine.drainLoad,
      answerBytes: () => memory.bytes,
      requestBytes: () => bodies.bytes,
    }),
  });

  /** Operations that added fields delegate to the served schema: their size depends on the one that delegates. */
  const delegated = {
    schema: served.schema,
    operations: createOperations<Plan>({
      ...limits,
      maxTokens: Infinity,
      allowsReservedNames: true,
      schema: served.schema,
      scopedUses: scopedUsesIn(served.schema, offered.scopes),
      compile: ({ document, operation: of }) => engine.plan(document, of),
    }),
  };
  const answerDelegated = delegateTo(delegated);
  /** Operations of callers, and of the program around the gateway. */
  const asked = {
    schema: offered.schema,
    operations: createOperations<Plan>({
      ...limits,
      schema: offered.schema,
      scopedUses: scopedUsesIn(offered.schema, offered.scopes),
      // Once per text. graphql-js executes what needs an addition; everything else is answered without it.
      compile: (planned) =>
        offered.touches(planned)
          ? offered.plan(planned)
          : engine.plan(planned.document, planned.operation),
    }),
  };

  let isStopping = false;
  const origin = createOrigin(config.corsOrigins);
  const graphiql = createGraphiql({
    needsCredential: config.auth !== undefined,
    isSandbox: parts.isSandbox,
    examples: examples(served.adapters),
  });
  const { maxBodyBytes, maxRequests, trustedDocumentsOnly } = config;
  const errors = createErrorPolicy(log);
  const steps = new OperationSteps({
    ...asked,
    introspection,
    trusted,
    trustedDocumentsOnly,
    read: createReadParams({ maxBodyBytes, maxRequests, bodies }),
  });
  const answers = createAnswers(engine, errors);
  // The order matters for security: a stage may rely on those above it.
  const admit: Stages = [
    // Before every stage that replies: a page of a listed origin may read all answers.
    origin.corsHeaders,
    // Before host names are checked: probes use the IP address of a pod. They get only yes or no.
    probes(() => tokens.state !== null && !isStopping),
    knownHosts(config, config.auth !== undefined),
    // Before authentication: browsers send preflights, and open pages, without a credential.
    origin.preflights,
    config.graphiql ? graphiql : undefined,
    // Before plugins, which may reply under other paths, and before any of the body is read.
    authenticate,
  ];
  const enter: Stages = [graphqlOnly, origin.crossSite, callerAddress(config.trustProxy)];
  const yoga = openYoga({
    schema: offered.schema,
    plugins: parts.plugins ?? [],
    admit,
    enter,
    steps,
    answers,
    errors,
  });
  const handler = createHandler(yoga.answer, errors, telemetry.requests());

  return {
    /** Answers requests, as the handler of a Node server or as a `fetch`. */
    handler,
    /** Executes operations on the schema that callers see, for the program around the gateway. */
    executor: inProcess({
      ...asked,
      engine,
      errors,
    }),
    offered,
    metrics: telemetry.metrics,
    /** Makes `/ready` reply 503 from now on. Everything else continues. */
    sayNotReady: () => void (isStopping = true),
    /** Begins no refresh any more. `close` waits until the newest token pair is safe. */
    stopRefreshing: () => void tokens.close(),
    /** Ends all upstream requests, after the newest token pair is safe and pages are reported. */
    close: async () => {
      await tokens.close();
      engine.close();
      await upstream.close();
      await yoga.dispose();
    },
  };
}

/**
 * Connects the parts that a request to the service needs, without a gateway around them: for other gateways.
 *
 * @throws Error with a message for the operator, if the store cannot be read, or belongs to another service
 */
export async function createManagedExecutor(parts: ServiceParts) {
  const telemetry = createTelemetry({ version: VERSION, log: parts.log });
  const { tokens, upstream } = await connectService(parts, telemetry);
  return {
    execute: graphqlToolsExecutor(upstream.send),
    /** Ends all requests, after the newest token pair is safe. */
    close: async () => {
      await tokens.close();
      await upstream.close();
    },
  };
}

/** @throws Error with a message for the operator, if the store cannot be read, or belongs to another service */
async function connectService(
  { config, proxies = {}, clock, tokens: custody }: ServiceParts,
  telemetry: Telemetry,
) {
  const onExchange = telemetry.tokens(() => tokens.health());
  const tokens = new TokenKeeper({ ...custody, onExchange });
  await tokens.open();
  const upstream: Upstream = openUpstream({
    baseUrl: config.recruitingUrl,
    agent: config.agent,
    connect: (options) => proxyAgent(proxies, options),
    concurrency: config.upstreamConcurrency,
    timeoutMs: config.upstreamTimeoutMs,
    tokens,
    clock,
    telemetry: telemetry.upstream(() => upstream.waiting),
  });
  return { tokens, upstream };
}
