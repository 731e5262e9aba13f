import {
  isNonNullType,
  OperationTypeNode,
  SchemaMetaFieldDef,
  type GraphQLError,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { isOfService } from '../../answers/answer-errors.ts';
import {
  collectFields,
  isStreamed,
  type CollectedField,
  type DeferUse,
  type SelectionScope,
} from '../../answers/collect-fields.ts';
import type { Slot } from '../../answers/envelope.ts';
import type { DeferredReading } from '../../answers/read.ts';
import { shapeOfField, type ShapeScope } from '../../answers/shape.ts';
import { argumentsOf } from '../../schema/derived-fields.ts';
import type { DerivedField, DerivedKind, Entity, NodeInterface } from '../../schema/derived.ts';
import { refusalOf, type Fragments } from '../../selections.ts';
import type { Call } from '../call.ts';
import { forwardedFields, type ForwardedAnswer, type ForwardedFields } from '../forwarded.ts';
import type { Drains } from '../lists/drains.ts';
import {
  listField,
  readList,
  type FieldParts,
  type FieldStreams,
  type ListField,
} from '../lists/list-field.ts';
import { fillPlaceholders, nestedPlaceholders, type PageInlining } from '../lists/nested-lists.ts';
import {
  isFilled,
  Later,
  type FieldValue,
  type OperationAnswer,
  type Output,
  type Written,
} from '../output.ts';
import type { PageTelemetry } from '../pages/page.ts';
import {
  idReader,
  nodeReader,
  recordField,
  recordsField,
  representationReader,
  type FieldPlan,
  type ReadReference,
} from '../records/record-fields.ts';
import type { AcceptedSizes } from '../requests/accepted-sizes.ts';
import { pageCost, type RequestWriter, type WrittenOperation } from '../requests/request-text.ts';
import { LOCAL, type LocalFields } from './local-fields.ts';
import { isAllowed, refusedMutation, type RootRules } from './root-rules.ts';

/** The plan of an operation for one outcome of its conditions, and one set of sizes of inlined pages. */
export interface Variant {
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

/** How the lists of an operation are sent, where it is answered in parts. */
type OperationStreams = (field: ListField) => FieldStreams;

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

/** What all operations are planned with. */
export interface PlanParts extends RootRules {
  /** Those of the query root, by name. */
  readonly derived: ReadonlyMap<string, DerivedField>;
  /** Those of nested lists, as `Type.field`. */
  readonly derivedBelow: ReadonlyMap<string, DerivedField>;
  readonly entities: readonly Entity[];
  readonly nodes: NodeInterface | undefined;
  readonly upstreamType: (servedType: string) => string;
  readonly inlining: PageInlining;
  readonly writer: Pick<RequestWriter, 'schema' | 'withoutNode' | 'toUpstream'>;
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
export function planVariant(parts: PlanParts, variant: VariantScope): Variant {
  const { schema } = parts;
  const { operation, fragments, variables, condition, defers, grow } = variant;
  const root = schema.getRootType(operation.operation)!;
  const scope: ShapeScope = {
    schema,
    fragments,
    condition,
    defers,
    upstreamType: parts.upstreamType,
    globalIds: parts.nodes,
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
  record: (field, scope) =>
    recordPlan(recordField, field, scope, idReader(field.entity, scope.parts.nodes)),
  node: (field, scope) =>
    recordPlan(recordField, field, scope, nodeReader(scope.parts.entities, field.nodes)),
  nodes: (field, scope) =>
    recordPlan(recordsField, field, scope, nodeReader(scope.parts.entities, field.nodes)),
  entities: (field, scope) =>
    recordPlan(recordsField, field, scope, representationReader(field.entities, scope.parts.nodes)),
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

/** Whether a null is where none is allowed, so that all data are null. */
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
  const name = typenameOf(field, root);
  return { parts: name === undefined ? undefined : [name], errors: [] };
}

function typenameOf(field: RootField, root: GraphQLObjectType): string | undefined {
  return rootFieldName(field) === '__typename' ? JSON.stringify(root.name) : undefined;
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
