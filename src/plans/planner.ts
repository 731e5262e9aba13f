import type { AnswerBudget } from '../answers/budget.ts';
import type { Cause } from '../cause.ts';
import { systemClock } from '../clock.ts';
import { createAccounts } from '../paging/price/accounts.ts';
import { createPageMeter, type Payer } from '../paging/price/page-meter.ts';
import type { AllowedMutations, ServedSchema } from '../schema/served/served-schema.ts';
import { OperationCall, type Call, type CallVariables, type SendRequest } from './call.ts';
import { createDrains, type DrainParts } from './drains.ts';
import { createPageInlining } from './inlined-pages.ts';
import { createKeptVariants } from './kept-variants.ts';
import { pagePrice } from './page-price.ts';
import { planOperation, type OperationPlan, type PlannedDocument } from './plan-operation.ts';
import { unwatched, type ReadingWatch } from './reading-watch.ts';

/** Makes plans of operations, and what each call of one has of its own. */
export interface Planner {
  /** @throws coded errors: what can never be answered */
  plan(document: PlannedDocument): OperationPlan;
  createCall(request: CallRequest): Call;
  /** Drains that run now, and that wait for their turn. */
  readonly drainLoad: { readonly running: number; readonly waiting: number };
}

export interface CallRequest {
  readonly variables: CallVariables;
  readonly payer: Payer;
  /** Aborted when the caller leaves; made when it is first needed. */
  readonly signal: () => AbortSignal;
  /** For telemetry: nothing here looks into it. */
  readonly cause: Cause | undefined;
}

export interface PlannerParts {
  readonly served: ServedSchema;
  readonly send: SendRequest;
  readonly watch?: ReadingWatch;
  readonly mutations: AllowedMutations;
  readonly connectionMax: number;
  /** Records that one operation may drain. */
  readonly drainMaxItems: number;
  /** Undefined where nothing is asked. */
  readonly drains?: DrainParts;
  readonly budget: AnswerBudget;
}

/**
 * An operation is planned once and answered again and again. The way of a request from here: plan-operation.ts, then
 * forward.ts for what the service has itself, all-field.ts and connection-field.ts (over page-text.ts, fetch-page.ts
 * and drains.ts) for lists, record-field.ts for records by their ids, and holes.ts for what is derived below other
 * objects.
 */
export function createPlanner(parts: PlannerParts): Planner {
  const { served, send, watch = unwatched, mutations, connectionMax, drainMaxItems } = parts;
  const { schema, upstream, adapters, nested, entities, upstreamType, toUpstream } = served;
  const limits = parts.drains ?? NO_DRAINS;
  const drains = createDrains({ send, watch }, limits);
  const accounts = createAccounts(limits.pagesPerMinute, limits.clock);
  const derived = new Set(
    [
      ...adapters.flatMap(({ all, connection }) => [all?.field, connection?.field]),
      ...entities.map(({ field }) => field),
      '_service',
      entities.length > 0 ? '_entities' : undefined,
    ].filter((name) => name !== undefined),
  );
  const shared = {
    schema,
    derived,
    mutations: typeof mutations === 'string' ? mutations : mutations.map(served.servedMutation),
    adapters,
    nested,
    entities,
    upstreamType,
    inlining: createPageInlining({ upstream, adapters: nested, connectionMax }),
    writer: { schema: upstream, toUpstream, price: pagePrice(served.snapshot) },
    drains,
    watch,
    connectionMax,
    variants: createKeptVariants(),
    sdl: served.subgraphSdl,
  };
  return {
    plan: (document) => planOperation(shared, document),
    createCall: ({ payer, ...request }) =>
      new OperationCall({
        ...request,
        send,
        drainMaxItems,
        held: parts.budget.open(),
        pages: createPageMeter(accounts.of(payer.name), payer.mayDrain),
      }),
    get drainLoad() {
      return drains.load;
    },
  };
}

const NO_DRAINS: DrainParts = {
  drainConcurrency: 1,
  maxDrains: 1,
  indexMaxIds: 0,
  drainMaxItems: 0,
  pagesPerMinute: 0,
  clock: systemClock,
  tokenSet: () => undefined,
};
