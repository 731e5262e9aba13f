import { hash } from 'node:crypto';
import {
  getNamedType,
  isNonNullType,
  Kind,
  OperationTypeNode,
  SchemaMetaFieldDef,
  visit,
  type DocumentNode,
  type FieldNode,
  type GraphQLError,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import type { ReadAs } from '../answers/answer-reader.ts';
import { isOfService, ADDED_KEY_PREFIX } from '../answers/answer-errors.ts';
import {
  collectFields,
  isStreamed,
  type CollectedField,
  type DeferUse,
  type SelectionScope,
} from '../answers/collect-fields.ts';
import type { Slot } from '../answers/envelope.ts';
import type { DeferredReading } from '../answers/read.ts';
import { shapeOfField, type ShapeScope } from '../answers/shape.ts';
import type { Payload, WholeAnswer } from '../answers/write-answer.ts';
import { codedError, forbidden } from '../errors.ts';
import { argumentsOf } from '../schema/derived-fields.ts';
import type { DerivedField, DerivedKind, Entity } from '../schema/derived.ts';
import { incrementalCheck } from '../schema/incremental-directives.ts';
import type { AllowedMutations, ServedSchema } from '../schema/served/served-schema.ts';
import {
  fragmentsOf,
  onlyOperation,
  refusalOf,
  refuseField,
  type Fragments,
  type Need,
  type ScopedUse,
} from '../selections.ts';
import { Call, type CallOrigin, type CallParts, type CallVariables } from './call.ts';
import { forwardedFields, type ForwardedAnswer, type ForwardedFields } from './forwarded.ts';
import { createDrains, type DrainParts, type Drains, type WalkTelemetry } from './lists/drains.ts';
import { listField, readList, type FieldParts, type ListField } from './lists/list-field.ts';
import {
  createPageInlining,
  fillPlaceholders,
  nestedPlaceholders,
  type PageInlining,
} from './lists/nested-lists.ts';
import { createLocalFields, LOCAL, type LocalFields } from './operation/local-fields.ts';
import {
  checkRootRules,
  isAllowed,
  refusedMutation,
  type RootRules,
} from './operation/root-rules.ts';
import { streamOperation, type OperationStreams } from './operation/stream-operation.ts';
import {
  isFilled,
  Later,
  type FieldValue,
  type OperationAnswer,
  type Output,
  type Written,
} from './output.ts';
import type { PageTelemetry } from './pages/page.ts';
import {
  idReader,
  recordField,
  recordsField,
  representationReader,
  type FieldPlan,
  type ReadReference,
} from './records/record-fields.ts';
import {
  createAcceptedSizes,
  type AcceptedSizes,
  type SizeTelemetry,
} from './requests/accepted-sizes.ts';
import { pageCost, type RequestWriter, type WrittenOperation } from './requests/request-text.ts';

/*
 * How an operation is compiled once and answered as bytes
 *
 *   text ── operations/ ──> checked document ── plan() ──> OperationPlan      once per text
 *                                                               │
 *                scopes of fields that the caller lacks ────────┤
 *                values of @skip, @include, @defer conditions   │
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
 * Planning does everything that does not depend on a call. It decides who answers each root field, prints the
 * requests (requests/) and compiles the shape of each expected answer into a scanner (answers/). The values of
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
 * Where the rooms begin: forwarded.ts, records/record-fields.ts, lists/list-field.ts, pages/page.ts,
 * requests/request-text.ts. A room imports only rooms that come after it, call.ts and output.ts.
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

export interface ScopedDocument extends PlannedDocument {
  readonly scopedUses: readonly ScopedUse[];
}

/** What a caller without the scope of a field gets: an error for the whole operation, or null with an error there. */
export type OnMissingScope = 'reject' | 'null';

/** Compiles operations, and creates the calls that they are answered with. */
export interface Planner {
  /**
   * @param grown called with the bytes of memory that the plan takes more than before
   * @throws coded errors for operations that can never be answered
   */
  plan(document: ScopedDocument, grown: (bytes: number) => void): OperationPlan;
  createCall(variables: CallVariables, origin: CallOrigin): Call;
  /**
   * Registers the context of this call: from now on, what carries it is executed on behalf of its caller.
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

export interface ReadingTelemetry extends PageTelemetry, SizeTelemetry, WalkTelemetry {
  /** Called for each GraphQL answer that was read. */
  answerRead(how: ReadAs): void;
}

interface PlannerParts extends CallParts {
  readonly served: ServedSchema;
  /** The schema that callers see, for introspection and routers. */
  readonly offered: Pick<ServedSchema, 'schema' | 'subgraphSdl'>;
  readonly telemetry: ReadingTelemetry;
  readonly mutations: AllowedMutations;
  readonly fieldScopes: OnMissingScope;
  readonly connectionMax: number;
  /** Bytes of memory for all kept operations. */
  readonly operationBytes: number;
  readonly drains: DrainParts;
}

export function createPlanner(parts: PlannerParts): Planner {
  const { served, offered, execute, telemetry, mutations, connectionMax, operationBytes } = parts;
  const { schema, upstream, nested, entities, upstreamType, toUpstream } = served;
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
    upstreamType,
    inlining: createPageInlining({ upstream, adapters: nested, connectionMax }),
    writer: { schema: upstream, toUpstream },
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
    plan: (document, grown) =>
      scopedPlan(document, {
        onMissing: parts.fieldScopes,
        removesFields: true,
        compile: (planned) => planOperation(shared, planned, grown),
      }),
    createCall: (variables, origin) => new Call(variables, origin, parts),
    admit: (call) => {
      const { origin } = call;
      const context = isObject(origin.context) ? origin.context : {};
      const before = callIn(context);
      const isFree = before === undefined || before.origin === origin;
      if (isFree && Reflect.set(context, admitted, call)) return context;
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

const ABSTRACT: ReadonlySet<DerivedKind> = new Set(['entities']);

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

interface ScopedPlanParts {
  readonly onMissing: OnMissingScope;
  /**
   * Whether the fields that a caller may not read are removed from the operation before it is compiled. Otherwise
   * resolvers refuse them (with-additions.ts), and all callers have the same plan.
   */
  readonly removesFields: boolean;
  /** @throws coded errors for operations that can never be answered */
  readonly compile: (planned: PlannedDocument) => OperationPlan;
}

/**
 * Plans an operation for callers with different scopes: a plan for each set of scopes that callers lack. Every way to an
 * answer passes here: those of HTTP, of the delegations of stitched fields, and of programs.
 */
export function scopedPlan(planned: ScopedDocument, parts: ScopedPlanParts): OperationPlan {
  const { onMissing, removesFields, compile } = parts;
  const { scopedUses } = planned;
  if (scopedUses.length === 0) return compile(planned);
  const plans = new Map<string, OperationPlan>();
  const planFor = ({ origin: { caller } }: Call): OperationPlan => {
    const missing = missingNeeds(scopedUses, caller);
    if (missing.length > 0 && onMissing === 'reject') throw missingScope(missing[0]!);
    const key = removesFields
      ? [...new Set(missing.map(({ scope }) => scope))].toSorted().join(' ')
      : '';
    const known = plans.get(key);
    if (known) return known;
    const plan = compile(key === '' ? planned : withoutRefused(planned, caller));
    plans.set(key, plan);
    return plan;
  };
  return {
    answer: async (call) => planFor(call).answer(call),
    stream: (call) => planFor(call).stream(call),
  };
}

type Caller = CallOrigin['caller'];

/** @param caller undefined: callers need no credential, and have every scope */
export function missingNeeds(uses: readonly ScopedUse[], caller: Caller): readonly Need[] {
  if (!caller) return [];
  return uses.flatMap(({ needs }) => needs.filter(({ scope }) => !caller.scopes.has(scope)));
}

/** The error of an operation that is refused. */
export function missingScope(need: Need): GraphQLError {
  return forbidden(describeNeed(need));
}

/** The error of a field that is null. It does not decide the status of the answer. */
export function missingScopeAt(need: Need): GraphQLError {
  return codedError('FORBIDDEN', describeNeed(need));
}

function describeNeed({ subject, scope }: Need): string {
  return `${subject} needs the scope "${scope}", which this credential does not have. The operator of this gateway can grant it.`;
}

function withoutRefused(
  { document, operation, scopedUses }: ScopedDocument,
  caller: Caller,
): PlannedDocument {
  const refused = new Map(
    scopedUses.flatMap((use): [FieldNode, Need][] => {
      const [need] = missingNeeds([use], caller);
      return need ? [[use.node, need]] : [];
    }),
  );
  const rewritten: DocumentNode = visit(onlyOperation(document, operation).document, {
    Field: (node) => {
      const need = refused.get(node);
      return need && refuseField(node, sentKeyOf(node, need), missingScopeAt(need));
    },
  });
  return onlyOperation(rewritten, operation);
}

/** Different for fields with other keys, types or errors, which are read in different ways. */
function sentKeyOf({ alias, name }: FieldNode, { subject, scope }: Need): string {
  const digest = hash('sha256', `${name.value} ${subject} ${scope}`, 'hex').slice(0, 16);
  return `${ADDED_KEY_PREFIX}Refused${digest}_${(alias ?? name).value}`;
}

/** What all operations are planned with. */
interface PlanParts extends RootRules {
  /** Those of the query root, by name. */
  readonly derived: ReadonlyMap<string, DerivedField>;
  /** Those of nested lists, as `Type.field`. */
  readonly derivedBelow: ReadonlyMap<string, DerivedField>;
  readonly entities: readonly Entity[];
  readonly upstreamType: (servedType: string) => string;
  readonly inlining: PageInlining;
  readonly writer: Pick<RequestWriter, 'schema' | 'toUpstream'>;
  /** The upstream's schema, unchanged. */
  readonly snapshot: GraphQLSchema;
  readonly drains: Drains;
  readonly telemetry: PageTelemetry;
  readonly sizes: AcceptedSizes;
  readonly connectionMax: number;
  /** Bytes of memory that the variants of one operation may take. */
  readonly variantBytes: number;
  readonly local: LocalFields;
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
  const isIncremental = incrementalCheck(document);
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
      if (!isQuery || !isIncremental(call.variables.values)) return undefined;
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

/** The plan of an operation for one outcome of its conditions, and one set of sizes of inlined pages. */
interface Variant {
  readonly fields: readonly RootField[];
  /**
   * Answers the root fields without `@defer`, or those of one `@defer`.
   *
   * @param streams in an answer in parts
   */
  answer(call: Call, use?: DeferUse, streams?: OperationStreams): Promise<OperationAnswer>;
}

type RootField = {
  readonly key: string;
  readonly collected: CollectedField;
  readonly isNullable: boolean;
} & (
  | { readonly kind: 'forwarded' }
  | { readonly kind: 'list'; readonly list: ListField }
  | { readonly kind: 'read'; readonly read: (call: Call) => Promise<FieldValue> | FieldValue }
);

function rootFieldName({ collected: { nodes } }: RootField): string {
  return nodes[0]!.name.value;
}

/** The root fields of a variant that are sent together: those without `@defer`, or those of one `@defer`. */
interface FieldGroup {
  readonly fields: readonly RootField[];
  /** Those of them that the service answers. */
  readonly forwarded: readonly RootField[];
  /** Whether the service answers the whole operation. */
  readonly isForwardedOnly: boolean;
  /** Requests the forwarded fields; undefined if there are none. */
  readonly service: ForwardedFields | undefined;
  readonly root: GraphQLObjectType;
}

/** What one variant is planned with. */
interface VariantScope {
  readonly operation: OperationDefinitionNode;
  readonly fragments: Fragments;
  /** The values that the sizes of inlined pages depend on; `true` stands for any other value. */
  readonly variables: Readonly<Record<string, unknown>>;
  readonly condition: SelectionScope['condition'];
  readonly defers: boolean;
  /** Whether the operation selects derived fields of nested lists. */
  readonly hasNested: boolean;
  /** Called with the bytes of memory of whatever is kept for the variant. */
  readonly grow: (bytes: number) => void;
}

/** Plans a variant: decides who answers each root field, and writes all requests that this takes. */
function planVariant(parts: PlanParts, variant: VariantScope): Variant {
  const { schema } = parts;
  const { operation, fragments, variables, condition, defers, grow } = variant;
  const root = schema.getRootType(operation.operation)!;
  const scope: ShapeScope = {
    schema,
    fragments,
    condition,
    defers,
    upstreamType: parts.upstreamType,
    placeholderAt: (type, key, nodes) => placeholders.at(type, key, nodes),
  };
  grow(BYTES_OF_VARIANT);
  const writer: RequestWriter = {
    ...parts.writer,
    onWritten: (characters) => grow(BYTES_OF_REQUEST + BYTES_OF_CHARACTER * characters),
    inlinePages: (document, pages) =>
      parts.inlining.inline(document, { ...scope, variables, pages }),
    cost: (document) => pageCost(parts.snapshot, document, condition),
  };
  const written: WrittenOperation = {
    operation: operation.operation,
    ...(operation.name && { name: operation.name }),
    directives: operation.directives ?? [],
    variableDefinitions: operation.variableDefinitions ?? [],
    fragments,
  };
  const isQuery = operation.operation === OperationTypeNode.QUERY;
  // Pages of lists below the result of a mutation are queries, and the directive may be for mutations only.
  const reading: WrittenOperation = isQuery
    ? written
    : { ...written, operation: OperationTypeNode.QUERY, directives: [] };
  const shared = { ...parts, writer, scope, operation: reading };
  const placeholders = nestedPlaceholders(parts.derivedBelow, shared);
  const { selections } = operation.selectionSet;
  const selected = collectFields(scope, root, selections);
  if (selected.refusal) return refusedVariant(selected.refusal);
  const collected = [...selected.fields.values()];
  const planned = collected.map((field) => rootField(parts, { ...variant, shared, root }, field));
  const fields = planned.map((field) =>
    isLoneTypename(field, planned) ? constant(field, JSON.stringify(root.name)) : field,
  );
  const groups = new Map<DeferUse | undefined, FieldGroup>(
    Array.from(
      Map.groupBy(fields, ({ collected: { deferred } }) => deferred),
      ([use, grouped]) => [use, groupOf(grouped)],
    ),
  );
  const nestedAliasBytes = placeholders.aliasBytes();
  const isOneList = fields.length === 1 && fields[0]!.kind === 'list' && !variant.hasNested;

  return createVariant(fields, groups, { nestedAliasBytes, isOneList });

  function groupOf(grouped: readonly RootField[]): FieldGroup {
    const forwarded = grouped.filter(({ kind }) => kind === 'forwarded');
    return {
      fields: grouped,
      forwarded,
      isForwardedOnly: forwarded.length > 0 && forwarded.length === fields.length,
      service: forwarded.length > 0 ? forwardedService(forwarded) : undefined,
      root,
    };
  }

  function forwardedService(forwarded: readonly RootField[]) {
    const isDeferred = new Set(fields.map(({ collected: { deferred } }) => deferred)).size > 1;
    const nodes = new Set(forwarded.flatMap((field) => field.collected.nodes));
    // Fields that this call skips are sent too, with their directives, unless only the gateway knows them.
    return forwardedFields({
      ...shared,
      operation: written,
      selections,
      isSent: (node) =>
        isDeferred ? nodes.has(node) : !refusalOf(node) && isForwardable(node.name.value),
      fields: forwarded.map((field) => forwardedShape(scope, root, field)),
    });
  }

  function isForwardable(name: string): boolean {
    if (name === '__typename') return true;
    return isQuery ? !parts.derived.has(name) && !LOCAL.has(name) : isAllowed(parts, name);
  }
}

/* Bytes of memory, measured like those of documents: see operations.ts. */
const BYTES_OF_VARIANT = 6_000;
/** Of a request that was written for it, with the shape and the scanner of its answer. */
const BYTES_OF_REQUEST = 14_000;
const BYTES_OF_CHARACTER = 60;

/** Answers an operation whose root fields depend on a condition that is null. */
function refusedVariant(refusal: GraphQLError): Variant {
  const errors = [{ thrown: refusal, path: undefined }];
  const refused = { data: null, errors, extensions: undefined };
  return { fields: [], answer: () => Promise.resolve(refused) };
}

/** Whether it is the `__typename` of the root and nothing else is requested: then no request is sent for it. */
function isLoneTypename(field: RootField, all: readonly RootField[]): boolean {
  if (field.kind !== 'forwarded' || rootFieldName(field) !== '__typename') return false;
  return !all.some(
    (other) =>
      other.kind === 'forwarded' &&
      rootFieldName(other) !== '__typename' &&
      other.collected.deferred === field.collected.deferred,
  );
}

function constant(field: RootField, text: string): RootField {
  const value: FieldValue = { parts: [text], errors: [] };
  return { ...field, kind: 'read', read: () => value };
}

function forwardedShape(scope: ShapeScope, root: GraphQLObjectType, field: RootField): Slot {
  const { key, collected } = field;
  const name = rootFieldName(field);
  if (name === '__typename') {
    const shape = {
      kind: 'typename',
      upstream: scope.upstreamType(root.name),
      served: root.name,
    } as const;
    return { key, shape, isSilent: false };
  }
  const shape = shapeOfField(scope, root.getFields()[name]!.type, collected.nodes);
  return { key, shape, isSilent: false };
}

interface RootFieldScope extends VariantScope {
  readonly shared: FieldParts;
  readonly root: GraphQLObjectType;
}

/** Decides how a root field is answered: by the service, from a list, or by the gateway itself. */
function rootField(
  parts: PlanParts,
  { operation, shared, root }: RootFieldScope,
  collected: CollectedField,
): RootField {
  const { key, nodes, refused } = collected;
  const name = refused?.name ?? nodes[0]!.name.value;
  const definition =
    root.getFields()[name] ?? (name === '__schema' ? SchemaMetaFieldDef : undefined);
  const field = { key, collected, isNullable: !definition || !isNonNullType(definition.type) };
  const nulled = (thrown: GraphQLError): RootField => {
    const value = { parts: undefined, errors: [{ thrown, path: [key] }] };
    return { ...field, kind: 'read', read: () => value };
  };
  if (refused) return nulled(refused.error);
  if (operation.operation === OperationTypeNode.MUTATION && definition && !isAllowed(parts, name)) {
    return nulled(refusedMutation(name));
  }
  if (name === '__typename') return { ...field, isNullable: false, kind: 'forwarded' };
  if (operation.operation !== OperationTypeNode.QUERY) return { ...field, kind: 'forwarded' };
  const derived = parts.derived.get(name);
  if (derived)
    return {
      ...field,
      ...derivedField(derived, { parts, shared, collected, definition: definition! }),
    };
  if (!LOCAL.has(name)) return { ...field, kind: 'forwarded' };
  return { ...field, kind: 'read', read: parts.local.plan(shared.scope, collected) };
}

type DerivedPlan =
  | { readonly kind: 'list'; readonly list: ListField }
  | { readonly kind: 'read'; readonly read: FieldPlan };

interface DerivedScope {
  readonly parts: PlanParts;
  readonly shared: FieldParts;
  readonly collected: CollectedField;
  readonly definition: GraphQLField<unknown, unknown>;
}

/** How each kind of derived field of the query root is answered. */
const PLANS: {
  readonly [Kind in DerivedKind]: (field: DerivedField<Kind>, scope: DerivedScope) => DerivedPlan;
} = {
  all: (field, { shared, collected }) => {
    // Nothing is deferred in a list that is sent whole: the deferred fields of all its records would have to be kept.
    const isDeferrable = shared.scope.defers === true && isStreamed(shared.scope, collected.nodes);
    const scope = { ...shared.scope, defers: isDeferrable };
    return { kind: 'list', list: listField({ ...shared, scope }, field, collected) };
  },
  connection: (field, { shared, collected }) => ({
    kind: 'list',
    list: listField(shared, field, collected),
  }),
  record: (field, scope) => recordPlan(recordField, field, scope, idReader(field.entity)),
  entities: (field, scope) =>
    recordPlan(recordsField, field, scope, representationReader(field.entities)),
  service: (_, { parts, shared, collected }) => ({
    kind: 'read',
    read: parts.local.plan(shared.scope, collected),
  }),
};

function derivedField<Kind extends DerivedKind>(field: DerivedField<Kind>, scope: DerivedScope) {
  return PLANS[field.kind](field, scope);
}

function recordPlan(
  plan: typeof recordField | typeof recordsField,
  field: DerivedField,
  { shared, collected: { key, nodes }, definition }: DerivedScope,
  read: ReadReference,
): DerivedPlan {
  const [argument = ''] = argumentsOf(field);
  return { kind: 'read', read: plan(shared, { definition, key, nodes, argument, read }) };
}

/** @param nestedAliasBytes by how many bytes aliases lengthen each record of a nested list, at most */
function createVariant(
  fields: readonly RootField[],
  groups: ReadonlyMap<DeferUse | undefined, FieldGroup>,
  { nestedAliasBytes, isOneList }: { nestedAliasBytes: number; isOneList: boolean },
): Variant {
  return {
    fields,
    answer: (call, use, streams) => {
      // Of nested lists, only how many records they may have together is known before their parents are read.
      if (nestedAliasBytes > 0 && !use) call.held.expect(nestedAliasBytes * call.drainBudget.max);
      const group = groups.get(use);
      if (!group) return NOTHING;
      if (isOneList) call.stopSharing();
      return answerGroup(group, call, streams);
    },
  };
}

const NOTHING = Promise.resolve({ data: [], errors: [], extensions: undefined });

/** Answers the fields of a group together. @param streams in an answer in parts */
async function answerGroup(
  group: FieldGroup,
  call: Call,
  streams: OperationStreams | undefined,
): Promise<OperationAnswer> {
  const { fields, forwarded, isForwardedOnly, root } = group;
  const answered = group.service?.request(call, isForwardedOnly);
  let values: readonly (FieldValue | undefined)[] = [];
  if (!isForwardedOnly) {
    // It may fail while the other fields are read.
    answered?.catch(() => {});
    values = await Promise.all(
      fields.map(async (field) =>
        field.kind === 'forwarded' ? undefined : readField(call, field, streams),
      ),
    );
  }
  const output: Output = { parts: [], errors: [] };
  let service: ForwardedAnswer | undefined;
  try {
    service = await answered;
    const waiting = service && call.hold(service, service.size);
    if (waiting) await waiting;
    if (service && isForwardedOnly) return await wholeAnswer(service, group, call);
  } catch (error) {
    service = undefined;
    output.errors.push({ thrown: error, path: [firstOf(forwarded)] });
  }
  if (service) output.errors.push(...group.service!.errorsOf(service, call));
  const later = streams && new Later();
  const extensions = service?.extensions;
  const answers = fields.map((field, i) => ({
    field,
    value: values[i] ?? ofService(service, forwarded.indexOf(field)) ?? withoutService(field, root),
  }));
  // The errors of forwarded fields were added above.
  let isNull = answers.some((answer) => answer.field.kind === 'forwarded' && nullsRoot(answer));
  for (const [i, answer] of answers.entries()) {
    const { field, value } = answer;
    const isMissing = nullsRoot(answer);
    // As in graphql-js, nulls that propagate to the root have one error, and those of the service.
    const errors = isNull && isMissing ? value.errors.filter(isOfService) : value.errors;
    for (const error of errors) output.errors.push(error);
    if (value.later) later?.add(value.later);
    isNull ||= isMissing;
    output.parts.push(`${i > 0 ? ',' : ''}${JSON.stringify(field.key)}:`);
    for (const part of value.parts ?? ['null']) output.parts.push(part);
  }
  if (isNull) return { data: null, errors: output.errors, extensions };
  return filled(call, output, { extensions, later });
}

/** The answer to an operation of which the service answers every field. */
function wholeAnswer(
  answer: ForwardedAnswer,
  { service }: FieldGroup,
  call: Call,
): OperationAnswer | Promise<OperationAnswer> {
  const { data, extensions } = answer;
  const errors = service!.errorsOf(answer, call);
  if (!data) return { data, errors, extensions };
  const later = laterOf(data.deferred.flat());
  return filled(call, { parts: data.whole, errors }, { extensions, later });
}

/** Whether the value is null although its type does not allow it: then all data are null. */
function nullsRoot({ field, value }: { field: RootField; value: FieldValue }): boolean {
  return !value.parts && !field.isNullable;
}

function readField(
  call: Call,
  field: Exclude<RootField, { kind: 'forwarded' }>,
  streams: OperationStreams | undefined,
): Promise<FieldValue> | FieldValue {
  if (field.kind === 'read') return field.read(call);
  const { list, key } = field;
  return readList(list, call, [key], streams?.(list));
}

/** @param field its index among the forwarded fields */
function ofService(service: ForwardedAnswer | undefined, field: number): FieldValue | undefined {
  if (!service) return undefined;
  const { data } = service;
  const later = laterOf(data?.deferred[field] ?? []);
  return { parts: data?.valueOf(field), errors: [], later };
}

function laterOf(readings: readonly DeferredReading[]): Later | undefined {
  return readings.length > 0 ? new Later(readings) : undefined;
}

/** The value of a forwarded field whose request failed: null, except for the root's `__typename`. */
function withoutService(field: RootField, root: GraphQLObjectType): FieldValue {
  const isTypename = rootFieldName(field) === '__typename';
  return { parts: isTypename ? [JSON.stringify(root.name)] : undefined, errors: [] };
}

/** The key of the first field that needs the service. */
function firstOf(fields: readonly RootField[]): string {
  return (fields.find((field) => rootFieldName(field) !== '__typename') ?? fields[0]!).key;
}

async function filled(
  call: Call,
  written: Written,
  further: Pick<OperationAnswer, 'extensions' | 'later'>,
): Promise<OperationAnswer> {
  const { parts, errors } = isFilled(written) ? written : await fillPlaceholders(call, written);
  return { ...further, data: parts, errors };
}
