import type { Cause } from '../upstream/request.ts';
import type { Clock } from '../clock.ts';
import type { Config } from '../config.ts';
import { KnownLists } from '../paging/known-lists.ts';
import { LookUps } from '../paging/look-up.ts';
import { pageSizes } from '../paging/page-size.ts';
import { SharedWalks } from '../paging/shared-walk.ts';
import { WalkSlots } from '../paging/walk-slots.ts';
import type { ServedSchema } from '../schema/served/served-schema.ts';
import { createCall, type CallParts, type CallVariables } from './call.ts';

export interface EngineParts extends CallParts {
  readonly served: ServedSchema;
  /** The schema that callers see, for introspection and routers. */
  readonly offered: Pick<ServedSchema, 'schema'> & { readonly subgraphSdl: () => string };
  readonly config: Pick<
    Config,
    | 'mutations'
    | 'connectionMax'
    | 'drainConcurrency'
    | 'drainMaxItems'
    | 'maxDrains'
    | 'indexMaxIds'
    | 'totalCountSeconds'
  >;
  readonly clock: Clock;
  /** Names the token set in use. With another one the lists may be different. */
  readonly tokenSet: () => string | undefined;
  readonly telemetry: EngineTelemetry;
}

export interface EngineTelemetry {
  /** Called for each page that was read of a list. */
  pageRead(cause: Cause | undefined): void;
}

export type Shared = ReturnType<typeof createShared>;

/** What all plans are compiled with, and what all calls share: the schema with its names, and the state of the lists. */
export function createShared(parts: EngineParts) {
  const { served, offered, telemetry } = parts;
  const { mutations, connectionMax } = parts.config;
  const { upstream, upstreamType } = served;
  let lists = createLists(parts);
  let tokenSetOfLists: string | undefined;
  return {
    served,
    schema: served.schema,
    offered,
    connectionMax,
    telemetry,
    /** The derived fields, by `Type.field`. */
    derived: new Map(served.derived.map((field) => [`${field.parent}.${field.name}`, field])),
    /** By their served names. */
    mutations: typeof mutations === 'string' ? mutations : mutations.map(served.rootField),
    /** The served names of types by those of the service, where they differ. */
    servedNames: new Map(
      Object.keys(upstream.getTypeMap())
        .map((name) => [upstreamType(name), name] as const)
        .filter(([of, name]) => of !== name),
    ),

    /** What all lists share. Read it for each call: nothing is known of the lists of another token set. */
    get lists() {
      const set = parts.tokenSet();
      // Without a name the first one is on its way: the first drain of a gateway may begin before there are tokens.
      if (set === undefined || set === tokenSetOfLists) return lists;
      // Walks that have begun keep what they learn for themselves.
      if (tokenSetOfLists !== undefined) lists = createLists(parts);
      tokenSetOfLists = set;
      return lists;
    },

    /** Creates a call of the gateway itself, in the background. */
    gatewayCall: (variables: CallVariables, signal: AbortSignal) =>
      createCall(parts, variables, { address: GATEWAY, cause: undefined, signal }),
  };
}

/** The caller whose turns and pages the background has. */
const GATEWAY = 'gateway';

/** What the lists of all calls share. */
function createLists({ clock, config }: EngineParts) {
  const slots = new WalkSlots(config.maxDrains, clock);
  const walks = new SharedWalks();
  return {
    known: new KnownLists({
      clock,
      maxIds: config.indexMaxIds,
      totalSeconds: config.totalCountSeconds,
    }),
    sizeOf: pageSizes(clock),
    /** The most pages in flight for one walk. */
    concurrency: config.drainConcurrency,
    walks,
    slots,
    lookUps: new LookUps({ maxRecords: config.drainMaxItems, walks, slots }),
  };
}
