import {
  getNamedType,
  Kind,
  OperationTypeNode,
  visit,
  type DocumentNode,
  type GraphQLObjectType,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import type { SelectionScope } from '../answers/collect-fields.ts';
import type { Payload, WholeAnswer } from '../answers/write-answer.ts';
import type { DerivedField, DerivedKind } from '../schema/derived.ts';
import { incrementalAsked } from '../schema/incremental-directives.ts';
import type { AllowedMutations, ServedSchema } from '../schema/served/served-schema.ts';
import { fragmentsOf } from '../selections.ts';
import { Call, type CallOrigin, type CallParts, type CallVariables } from './call.ts';
import { createDrains, type DrainParts, type WalkTelemetry } from './lists/drains.ts';
import { createPageInlining } from './lists/nested-lists.ts';
import { createLocalFields } from './operation/local-fields.ts';
import { checkRootRules } from './operation/root-rules.ts';
import { streamOperation } from './operation/stream-operation.ts';
import { planVariant, type PlanParts, type Variant } from './operation/variant.ts';
import type { PageTelemetry } from './pages/page.ts';
import { createAcceptedSizes, type SizeTelemetry } from './requests/accepted-sizes.ts';
import { nodeSelections } from './requests/node-selections.ts';

/*
 * How an operation is compiled once and answered as bytes
 *
 *   text ── operations/ ──> checked document ── plan() ──> OperationPlan      once per text
 *                                                               │
 *                values of @skip, @include, @defer conditions ──┤
 *                sizes of inlined pages                         v
 *                                                            Variant          once per combination
 *                 ┌──────────────────────────────┬──────────────┴─────────────────┐
 *         forwarded fields                derived fields                    local fields
 *         one request, written            list: requests for its pages      __schema, __type,
 *         as the caller wrote it          record: requests by id            _service
 *                 │                              │                                │
 *   ── Call ──────┼──────────────────────────────┼────────────────────────────────┼── each request of a caller
 *                 v                              v                                v
 *         bytes of the service            bytes of its pages                     text
 *                 └───────────────── parts in the order of the answer ────────────┘
 *
 * Planning does everything that does not depend on a call. It decides who answers each root field (operation/), prints
 * the requests (requests/) and compiles the shape of each expected answer into a scanner (answers/). The values of
 * variables matter only through conditions and the sizes of inlined pages, so a few variants of an operation answer all
 * its calls. Plans and variants are kept, each within a bound of memory.
 *
 * A call adds the values of its variables, as the caller wrote them, to the printed requests. The scanner compares the
 * bytes of an answer with the shape in one pass, without creating objects. It notes where records begin and end, and
 * what to cut out: the fields that the gateway selected for itself. The bytes between the cuts go to the caller
 * unchanged, so numbers, escapes and the order of keys stay as the service wrote them. Equal requests in flight share
 * one answer, if it is read in the same way for all of them (requests/request-text.ts).
 *
 * An answer that the scanner does not take is read in general (answers/read.ts), with the same shape and the same
 * result: one with errors, with a value that its type does not allow, or with nested lists. Its lists and objects are
 * taken apart until the scanner takes what is inside. A placeholder stands for each derived field of a nested list.
 * lists/nested-lists.ts fills it in, starting from the first page, which the request for the parent had inlined where
 * possible.
 *
 * Where the rooms begin: operation/variant.ts, forwarded.ts, records/record-fields.ts, lists/list-field.ts,
 * pages/page.ts, requests/request-text.ts. A room imports only rooms that come after it, call.ts and output.ts.
 */

/** A compiled operation: made once, answered in every call. */
export interface OperationPlan {
  /** Answers in one piece. */
  answer(call: Call): Promise<WholeAnswer>;
  /** Answers in the parts that `@defer` and `@stream` ask for; undefined if their conditions are false in this call. */
  stream(call: Call): AsyncGenerator<Payload, void, undefined> | undefined;
}

export interface PlannedDocument {
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
}

/** Compiles operations, and creates the calls that they are answered with. */
export interface Planner {
  /**
   * @param grown called with the bytes of memory that the plan takes more than before
   * @throws coded errors for operations that can never be answered
   */
  plan(document: PlannedDocument, grown: (bytes: number) => void): OperationPlan;
  createCall(variables: CallVariables, origin: CallOrigin): Call;
  /**
   * From now on, what carries the context of this call is executed on behalf of its caller.
   *
   * @returns that context, or a copy if it is frozen, or carries the call of another request
   */
  admit(call: Call): object;
  /** Ends what runs in the background. */
  close(): void;
  /** Returns the admitted call of the operation that is answered with this context; undefined without one. */
  callWith(context: object | undefined): Call | undefined;
  /** Drains that run, and drains that wait for their turn. */
  readonly drainLoad: { readonly running: number; readonly waiting: number };
}

export interface ReadingTelemetry extends PageTelemetry, SizeTelemetry, WalkTelemetry {}

interface PlannerParts extends CallParts {
  readonly served: ServedSchema;
  /** The schema that callers see, for introspection and routers. */
  readonly offered: Pick<ServedSchema, 'schema' | 'subgraphSdl'>;
  readonly telemetry: ReadingTelemetry;
  readonly mutations: AllowedMutations;
  readonly connectionMax: number;
  /** Bytes of memory for all kept operations. */
  readonly operationBytes: number;
  readonly drains: DrainParts;
}

export function createPlanner(parts: PlannerParts): Planner {
  const { served, offered, execute, telemetry, mutations, connectionMax, operationBytes } = parts;
  const { schema, upstream, nested, entities, nodes, upstreamType, toUpstream } = served;
  const drains = createDrains({ execute, telemetry, callers: parts.callers }, parts.drains);
  const root = schema.getQueryType()!.name;
  const [atRoot, below] = [true, false].map((isAtRoot) =>
    served.derived.filter(({ parent }) => (parent === root) === isAtRoot),
  );
  const shared = {
    schema,
    derived: new Map(atRoot!.map((field) => [field.name, field])),
    derivedBelow: new Map(below!.map((field) => [`${field.parent}.${field.name}`, field])),
    derivedTypes: new Set(served.derived.flatMap((field) => derivedTypes(schema, field))),
    derivedAbstract: new Set(
      atRoot!.filter(({ kind }) => ABSTRACT.has(kind)).map(({ name }) => name),
    ),
    mutations: typeof mutations === 'string' ? mutations : mutations.map(served.servedMutation),
    entities,
    nodes,
    upstreamType,
    inlining: createPageInlining({ upstream, adapters: nested, connectionMax }),
    writer: { schema: upstream, withoutNode: nodes && nodeSelections(schema, nodes), toUpstream },
    snapshot: served.snapshot,
    drains,
    telemetry,
    sizes: createAcceptedSizes(parts.drains.clock, telemetry),
    connectionMax,
    variantBytes: operationBytes / 8,
    local: createLocalFields(offered.schema, offered.subgraphSdl),
  };
  // Not a WeakMap: one that each request grows is much of the work of collecting garbage.
  const admitted = Symbol('call');
  const callIn = (context: object) => Reflect.get(context, admitted) as Call | undefined;
  return {
    plan: (document, grown) => planOperation(shared, document, grown),
    createCall: (variables, origin) => new Call(variables, origin, parts),
    admit: (call) => {
      const { origin } = call;
      const context = isObject(origin.context) ? origin.context : {};
      const before = callIn(context);
      const isOwn = before === undefined || before.origin === origin;
      if (isOwn && Reflect.set(context, admitted, call)) return context;
      // Frozen, or the context of other requests too.
      const copy = { ...context };
      Reflect.set(Object.setPrototypeOf(copy, Object.getPrototypeOf(context)), admitted, call);
      return copy;
    },
    callWith: (context) => (isObject(context) ? callIn(context) : undefined),
    close: drains.close,
    get drainLoad() {
      return drains.load;
    },
  };
}

const ABSTRACT: ReadonlySet<DerivedKind> = new Set(['node', 'nodes', 'entities']);

/** Returns the types that a derived field brings: of a connection also its edges and its `pageInfo`. */
function derivedTypes(schema: GraphQLSchema, { kind, parent, name }: DerivedField): string[] {
  if (kind !== 'connection' && kind !== 'service') return [];
  const typeOf = (on: string, field: string) =>
    getNamedType((schema.getType(on) as GraphQLObjectType).getFields()[field]!.type).name;
  const type = typeOf(parent, name);
  if (kind === 'service') return [type];
  return [type, typeOf(type, 'edges'), typeOf(type, 'pageInfo')];
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/**
 * @param grown called with the bytes of memory that the plan takes more than before
 * @throws BAD_USER_INPUT, FORBIDDEN: see `checkRootRules`
 */
function planOperation(
  parts: PlanParts,
  { document, operation }: PlannedDocument,
  grown: (bytes: number) => void,
): OperationPlan {
  const fragments = fragmentsOf(document);
  checkRootRules(parts, operation, fragments);
  const conditions = conditionsOf(document);
  const decide = parts.inlining.decisions(document);
  const variants = new KeptVariants(parts.variantBytes, grown);
  const isQuery = operation.operation === OperationTypeNode.QUERY;
  const asksForIncremental = incrementalAsked(document);
  const variant = ({ variables: { values } }: Call, defers: boolean): Variant => {
    const decided = conditions.map((name) => conditionIn(values, name));
    const bits = decided.map((value) => (value === null ? 'n' : value ? '1' : '0')).join('');
    const outcome = bits + (defers ? 'd' : '');
    const name = decide ? `${outcome} ${decide(parts.schema, values)}` : outcome;
    const known = variants.get(name);
    if (known) return known;
    return variants.add(name, (grow) =>
      planVariant(parts, {
        operation,
        fragments,
        variables: outlineOf(values),
        condition: valueIn(new Map(conditions.map((condition, i) => [condition, decided[i]!]))),
        defers,
        hasNested: decide !== undefined,
        grow,
      }),
    );
  };
  return {
    answer: (call) => variant(call, false).answer(call),
    stream: (call) => {
      // `@defer` and `@stream` are ignored in a mutation.
      if (!isQuery || !asksForIncremental(call.variables.values)) return undefined;
      return streamOperation(variant(call, true), call);
    },
  };
}

/** Only the `if` of `@defer` and `@stream` may have no value. It is true by default. */
function conditionIn(values: Readonly<Record<string, unknown>>, name: string): boolean | null {
  const { [name]: value = true } = values;
  return value === null ? null : value !== false;
}

/** Created here, not in `planOperation`: a closure keeps everything alive that closures of the same scope refer to. */
function valueIn(conditions: ReadonlyMap<string, boolean | null>): SelectionScope['condition'] {
  return (name) => conditions.get(name) ?? null;
}

/**
 * Keeps what the sizes of inlined pages depend on, numbers, nulls and empty cursors, and replaces all other values:
 * variants are kept, and callers may send a megabyte of variables with each document.
 */
function outlineOf(values: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, isKept(value) ? value : true]),
  );
}

function isKept(value: unknown): boolean {
  return value === null || value === undefined || value === '' || typeof value === 'number';
}

/** Finds the variables that `@skip`, `@include` and the `if` of `@defer` and `@stream` depend on. */
function conditionsOf(document: DocumentNode): readonly string[] {
  const names = new Set<string>();
  visit(document, {
    Directive: ({ arguments: args = [] }) => {
      for (const { name, value } of args) {
        if (name.value === 'if' && value.kind === Kind.VARIABLE) names.add(value.name.value);
      }
    },
  });
  return [...names];
}

/** Keeps the latest variants of one operation. Callers choose how many are made: by their conditions and page sizes. */
class KeptVariants {
  readonly #variants = new Map<string, KeptVariant>();
  readonly #max: number;
  readonly #grown: (bytes: number) => void;
  #bytes = 0;

  /**
   * @param max bytes of memory that they may take, unless it is only one
   * @param grown called with the bytes that they take more than before
   */
  constructor(max: number, grown: (bytes: number) => void) {
    this.#max = max;
    this.#grown = grown;
  }

  get(name: string): Variant | undefined {
    return this.#variants.get(name)?.variant;
  }

  /** @param make calls `grow` with the bytes of whatever the variant keeps: now, or when it is needed */
  add(name: string, make: (grow: (bytes: number) => void) => Variant): Variant {
    let kept: KeptVariant | undefined;
    let bytes = 2 * name.length;
    const variant = make((more) => {
      if (!kept) bytes += more;
      else if (this.#variants.get(name) === kept) this.#grow(kept, more);
    });
    kept = { variant, bytes: 0 };
    this.#variants.set(name, kept);
    this.#grow(kept, bytes);
    return variant;
  }

  #grow(kept: KeptVariant, by: number): void {
    const before = this.#bytes;
    kept.bytes += by;
    this.#bytes += by;
    for (const [name, first] of this.#variants) {
      if (this.#bytes <= this.#max || this.#variants.size === 1) break;
      this.#variants.delete(name);
      this.#bytes -= first.bytes;
    }
    this.#grown(this.#bytes - before);
  }
}

interface KeptVariant {
  readonly variant: Variant;
  bytes: number;
}
