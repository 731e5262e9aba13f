import type { GraphQLSchema } from 'graphql';
import type { Cause } from '../cause.ts';
import type { Clock } from '../clock.ts';
import { LookUps } from '../paging/look-up.ts';
import { PageBudget } from '../paging/page-budget.ts';
import { PageIndexes } from '../paging/page-index.ts';
import { PageSizes } from '../paging/page-size.ts';
import { SharedWalks, type WalkReaders } from '../paging/shared-walk.ts';
import { Totals } from '../paging/totals.ts';
import { WalkSlots } from '../paging/walk-slots.ts';
import type { WalkedPage } from '../paging/walk.ts';
import type { DerivedField } from '../schema/derived.ts';
import type { AllowedMutations, ServedSchema } from '../schema/served/served-schema.ts';
import type { Sender } from '../upstream/request.ts';
import { Loaders, type CallParts, type CallVariables, type Requester } from './call.ts';
import type { ListRecord } from './list-record.ts';

export interface EngineParts extends CallParts {
  readonly served: ServedSchema;
  /** The schema that callers see, for introspection and routers. Default: the served one. */
  readonly offered?: Pick<ServedSchema, 'schema' | 'subgraphSdl'> | undefined;
  readonly mutations: AllowedMutations;
  /** The largest `first` and `last` of a connection. */
  readonly connectionMax: number;
  /** Pages in flight per walk, at most. */
  readonly drainConcurrency: number;
  /** Walks at a time; others wait for a slot. */
  readonly maxDrains: number;
  /** Records that all page indexes together remember. */
  readonly indexMaxIds: number;
  /** Seconds for which totals are returned without renewing them. */
  readonly totalCountSeconds: number;
  readonly clock: Clock;
  /** Names the token set in use. With another one the lists may be different. */
  readonly tokenSet: () => string | undefined;
  readonly telemetry: EngineTelemetry;
}

export interface EngineTelemetry {
  /** Called for each page that was read of a list. */
  pageRead(cause: Cause | undefined): void;
}

/** What all plans are compiled with, and what all calls share: the schema with its names, and the state of the lists. */
export class Shared {
  readonly served: ServedSchema;
  readonly schema: GraphQLSchema;
  readonly offered: Pick<ServedSchema, 'schema' | 'subgraphSdl'>;
  /** The derived fields, by `Type.field`. */
  readonly derived: ReadonlyMap<string, DerivedField>;
  /** The served names of types by those of the service, where they differ. */
  readonly servedNames: ReadonlyMap<string, string>;
  /** By their served names. */
  readonly mutations: AllowedMutations;
  readonly connectionMax: number;
  readonly telemetry: EngineTelemetry;
  #lists: Lists;
  #tokenSet: string | undefined;
  readonly #parts: EngineParts;
  /** By the records of a page: readers of a walk share its text. */
  readonly #texts = new WeakMap<readonly ListRecord[], PageText>();
  #numbers = 0;

  constructor(parts: EngineParts) {
    const { served, offered = served, mutations } = parts;
    const { upstream, derived, upstreamType } = served;
    this.served = served;
    this.schema = served.schema;
    this.offered = offered;
    this.derived = new Map(derived.map((field) => [`${field.parent}.${field.name}`, field]));
    this.mutations =
      typeof mutations === 'string' ? mutations : mutations.map(served.servedMutation);
    this.servedNames = new Map(
      Object.keys(upstream.getTypeMap())
        .map((name) => [upstreamType(name), name] as const)
        .filter(([of, name]) => of !== name),
    );
    this.connectionMax = parts.connectionMax;
    this.telemetry = parts.telemetry;
    this.#parts = parts;
    this.#lists = new Lists(parts);
  }

  /** What all lists share. Read it for each call: nothing is known of the lists of another token set. */
  get lists(): Lists {
    const set = this.#parts.tokenSet();
    // Without a name the first one is on its way: the first drain of a gateway may begin before there are tokens.
    if (set === undefined || set === this.#tokenSet) return this.#lists;
    // Walks that have begun keep what they learn for themselves.
    if (this.#tokenSet !== undefined) this.#lists = new Lists(this.#parts);
    this.#tokenSet = set;
    return this.#lists;
  }

  /** Drains that run, and drains that wait for their turn. */
  get drainLoad() {
    const { slots } = this.#lists;
    return { running: slots.taken, waiting: slots.waiting };
  }

  /** Ends what runs in the background. */
  close(): void {
    this.#lists.totals.clear();
  }

  /** A number that nothing else has: a name for what no text names. */
  number(): number {
    this.#numbers += 1;
    return this.#numbers;
  }

  /** Asks on behalf of all readers of a walk. @param first the operation that begins it */
  walkRequester(first: Requester, readers: WalkReaders): Requester {
    return this.#requester(first, readers.signal, () => readers.spend());
  }

  /** Asks in the background, in the turns of the gateway itself. */
  gatewayRequester(variables: CallVariables, signal: AbortSignal): Requester {
    const budget = new PageBudget(this.#parts.callers, GATEWAY, true);
    const gateway = { variables, caller: GATEWAY, cause: undefined };
    return this.#requester(gateway, signal, () => budget.spend());
  }

  #requester(
    { variables, caller, cause }: Pick<Requester, 'variables' | 'caller' | 'cause'>,
    signal: AbortSignal,
    spendPage: () => void,
  ): Requester {
    const { send, drainMaxItems: max } = this.#parts;
    const loaders = new Loaders({ remembers: false });
    const requester: Requester = {
      variables,
      caller,
      cause,
      operation: loaders,
      budget: undefined,
      drainBudget: { max, left: max },
      signal,
      ask: async (request, pages) => {
        for (let page = 0; page < pages; page += 1) spendPage();
        const sender: Sender = { signal, caller, cause, priority: 'drain' };
        return send(request, sender);
      },
      loader: (name, load) => loaders.of(name, load),
      // Each of its readers counts what it keeps; DRAIN_MAX_ITEMS bounds the nested lists of its pages.
      hold: () => {},
    };
    return requester;
  }

  /** The JSON of a page's records, with commas between them. */
  textOf({ page: { records }, offsets }: WalkedPage<ListRecord>): Buffer {
    const known = this.#texts.get(records);
    // Readers of a page take the same offsets of it, up to their limits.
    if (known && known.count === offsets.length) return known.text;
    const text = Buffer.from(offsets.map((offset) => records[offset]!.texts[0]).join(','));
    this.#texts.set(records, { count: offsets.length, text });
    return text;
  }
}

/** The caller whose turns and pages the background has. */
const GATEWAY = 'gateway';

interface PageText {
  readonly count: number;
  readonly text: Buffer;
}

/** What the lists of all calls share. */
class Lists {
  readonly indexes: PageIndexes;
  readonly sizes: PageSizes;
  /** The most pages in flight for one walk. */
  readonly concurrency: number;
  readonly totals: Totals;
  readonly walks = new SharedWalks();
  readonly slots: WalkSlots;
  readonly lookUps: LookUps;

  constructor(parts: EngineParts) {
    const { clock, drainMaxItems: maxRecords } = parts;
    this.indexes = new PageIndexes(parts.indexMaxIds);
    this.sizes = new PageSizes(clock);
    this.concurrency = parts.drainConcurrency;
    this.totals = new Totals(clock, parts.totalCountSeconds);
    this.slots = new WalkSlots(parts.maxDrains, clock);
    this.lookUps = new LookUps({ clock, maxRecords, slots: this.slots });
  }

  /** Walks that begin from now on share nothing with earlier ones: call it before a mutation. */
  separate(): void {
    this.walks.separate();
  }

  /** Forgets what a mutation may have changed: call it after one. */
  forget(): void {
    this.walks.separate();
    this.totals.clear();
    this.lookUps.forget();
  }
}
