import {
  executeSync,
  isNonNullType,
  Kind,
  OperationTypeNode,
  visit,
  type DocumentNode,
  type FragmentDefinitionNode,
  type GraphQLObjectType,
  type OperationDefinitionNode,
} from 'graphql';
import { collectFields, selectionsOf, type CollectedField, type DeferUse } from '../answers/collect-fields.ts';
import { inlinedPageKey, type AnswerError } from '../answers/errors.ts';
import type { DeferredReading } from '../answers/read.ts';
import { shapeOf, type HoleShape, type ShapeScope } from '../answers/shape.ts';
import type { WholeAnswer } from '../answers/write-answer.ts';
import type { Payload } from '../answers/write-payload.ts';
import { asksForIncremental } from '../schema/incremental-directives.ts';
import type { Adapter, NestedAdapter } from '../schema/derivation/adapter.ts';
import type { Entity } from '../schema/derivation/entity.ts';
import { idOf } from '../schema/derivation/reach-parent.ts';
import { readAll, type FieldValue } from './all-field.ts';
import type { Call } from './call.ts';
import { readConnection } from './connection-field.ts';
import type { Drains } from './drains.ts';
import {
  forwardedFields,
  type ForwardedAnswer,
  type ForwardedFields,
  type ForwardedShape,
} from './forward.ts';
import { fillHoles, isHole, type Filling } from './holes.ts';
import type { PageInlining } from './inlined-pages.ts';
import { listField, openList, type ListField } from './list-field.ts';
import type { Output, Part } from './list-record.ts';
import type { ReadingWatch } from './reading-watch.ts';
import { entitiesField, recordField } from './record-field.ts';
import { idKey } from './record-identity.ts';
import { checkBelowRoot, isAllowed, onlyForwarded, refusedMutation, type RootRules } from './root-fields.ts';
import { askSparingParents } from './sparing-parents.ts';
import { isStreamed, streamOperation } from './stream-operation.ts';
import type { KeptVariants } from './kept-variants.ts';
import type { RequestWriter, WrittenOperation } from './upstream-request.ts';

/** What an operation comes to: made once, answered again and again. */
export interface OperationPlan {
  /** Gives everything at once. */
  answer(call: Call): Promise<OperationAnswer>;
  /** Gives what `@defer` and `@stream` say in later parts; undefined when, in this call, they say nothing. */
  stream(call: Call): AsyncGenerator<Payload, void, undefined> | undefined;
}

export interface OperationAnswer extends WholeAnswer {
  readonly deferred: readonly DeferredReading[];
}

export interface PlanParts extends RootRules {
  readonly adapters: readonly Adapter[];
  readonly nested: readonly NestedAdapter[];
  readonly entities: readonly Entity[];
  readonly upstreamType: (servedType: string) => string;
  readonly inlining: PageInlining;
  readonly writer: Omit<RequestWriter, 'inlinePages' | 'defers' | 'onWritten'>;
  readonly drains: Drains;
  readonly watch: ReadingWatch;
  readonly connectionMax: number;
  readonly variants: KeptVariants;
  /** The SDL that `_service` gives. */
  readonly sdl: () => string;
}

export interface PlannedDocument {
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
}

/** Bytes. Smaller answers of the service are not counted: so much is in the buffers of a socket anyway. */
const LARGE = 65_536;

export function planOperation(parts: PlanParts, { document, operation }: PlannedDocument): OperationPlan {
  const fragments = new Map(
    document.definitions.flatMap((one) => (one.kind === Kind.FRAGMENT_DEFINITION ? [[one.name.value, one]] : [])),
  );
  const conditions = conditionsOf(document);
  const decide = parts.inlining.decisions(document);
  const variants = parts.variants.ofOperation();
  const isQuery = operation.operation === OperationTypeNode.QUERY;
  const variant = ({ variables: { values } }: Call, defers: boolean): Variant => {
    const isTrue = (name: string) => values[name] === true;
    const bits = conditions.map((name) => (isTrue(name) ? '1' : '0')).join('') + (defers ? 'd' : '');
    const name = decide ? `${bits} ${decide(parts.schema, values)}` : bits;
    const known = variants.get(name);
    if (known) return known;
    // Its own copy: nothing of the call is kept.
    const truth = new Set(conditions.filter(isTrue));
    const made = planVariant(parts, {
      operation,
      fragments,
      variables: values,
      isTrue: (condition) => truth.has(condition),
      defers,
    });
    variants.set(name, made);
    return made;
  };
  return {
    answer: (call) => variant(call, false).answer(call),
    stream: (call) => {
      // Those of a mutation are ignored.
      if (!isQuery || !asksForIncremental(document, call.variables.values)) return undefined;
      return streamOperation(variant(call, true), call);
    },
  };
}

/** The variables that `@skip`, `@include` and the `if` of `@defer` and `@stream` go by. */
function conditionsOf(document: DocumentNode): readonly string[] {
  const found = new Set<string>();
  visit(document, {
    Directive: ({ arguments: args = [] }) => {
      for (const { name, value } of args) {
        if (name.value === 'if' && value.kind === Kind.VARIABLE) found.add(value.name.value);
      }
    },
  });
  return [...found];
}

interface VariantParts {
  readonly operation: OperationDefinitionNode;
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  /** Those of the call for which it is made: of these, only what the variant goes by is looked at. */
  readonly variables: Readonly<Record<string, unknown>>;
  readonly isTrue: (variable: string) => boolean;
  readonly defers: boolean;
}

export interface Variant {
  /** Characters of the requests that were written for it when it was made. */
  readonly size: number;
  readonly fields: readonly RootField[];
  /**
   * Answers the fields that come together: those that are not put off, or those that one `@defer` puts off.
   *
   * @param given values that are there already
   */
  answer(call: Call, use?: DeferUse, given?: GivenValues): Promise<OperationAnswer>;
}

export type GivenValues = ReadonlyMap<RootField, Promise<FieldValue>>;

export type RootField = { readonly key: string; readonly collected: CollectedField; readonly isNullable: boolean } & (
  | { readonly kind: 'forwarded' }
  | { readonly kind: 'list'; readonly list: ListField }
  | { readonly kind: 'read'; readonly read: (call: Call) => Promise<FieldValue> | FieldValue }
);

function planVariant(parts: PlanParts, variant: VariantParts): Variant {
  const { schema } = parts;
  const { operation, fragments, variables, isTrue, defers } = variant;
  const root = schema.getRootType(operation.operation)!;
  const scope: ShapeScope = {
    schema,
    fragments,
    isTrue,
    defers,
    upstreamType: parts.upstreamType,
    holeAt: (type, key, nodes) => holes.at(type, key, nodes),
  };
  let size = 0;
  const writer: RequestWriter = {
    ...parts.writer,
    defers,
    onWritten: (characters) => void (size += characters),
    inlinePages: (inlined, wanted) => parts.inlining.inline(inlined, { ...scope, variables, wanted }),
  };
  const written: WrittenOperation = {
    operation: operation.operation,
    ...(operation.name && { name: operation.name }),
    directives: operation.directives ?? [],
    variableDefinitions: operation.variableDefinitions ?? [],
    fragments,
  };
  const isQuery = operation.operation === OperationTypeNode.QUERY;
  // Pages of lists below what a mutation returns are queries; a directive may be for mutations alone.
  const reading: WrittenOperation = isQuery
    ? written
    : { ...written, operation: OperationTypeNode.QUERY, directives: [] };
  const shared = { ...parts, writer, scope, operation: reading };
  const holes = holesOf(parts.nested, shared);
  const collected = [...collectFields(scope, root, operation.selectionSet.selections).values()];
  checkBelowRoot(parts, collected, root, fragments);
  const planned = collected.map((field) => rootField(parts, { ...variant, shared, root }, field));
  const fields = planned.map((field) => (isAlone(field, planned) ? constant(field, JSON.stringify(root.name)) : field));
  const isForwarded = forwardable(parts, operation.operation);
  const groups = new Map(
    Array.from(Map.groupBy(fields, ({ collected: { deferred } }) => deferred), ([use, some]) => {
      const own = some.filter(({ kind }) => kind === 'forwarded');
      const isAll = own.length === fields.length;
      // What is skipped in this call has to be left out too, where the service does not know it.
      const selections =
        groupsOf(fields) > 1
          ? own.flatMap(({ collected: { nodes } }) => nodes)
          : onlyForwarded(isForwarded, operation.selectionSet.selections, fragments);
      const shapes = own.map(({ key, collected: { nodes } }) => forwardedShape(scope, root, key, nodes));
      const forwarded = own.length > 0 ? forwardedFields({ writer, operation: written, selections, fields: shapes }) : undefined;
      return [use, { fields: some, own, isAll: isAll && own.length > 0, forwarded }] as const;
    }),
  );

  return { size, fields, answer };

  async function answer(call: Call, use?: DeferUse, given?: GivenValues): Promise<OperationAnswer> {
    const group = groups.get(use);
    if (!group) return { data: [], errors: [], extensions: undefined, deferred: [] };
    const { own, isAll, forwarded } = group;
    if (isAll) {
      try {
        const answer = await forward(call, forwarded!, true);
        const { data, errors, extensions } = answer;
        if (answer.size >= LARGE) await call.held.hold(answer, answer.size);
        if (!data) return { data, errors, extensions, deferred: [] };
        const output: Output = { parts: data.whole as Part[], errors: errors as AnswerError[], deferred: data.deferred.flat() };
        return await filled(call, output, extensions);
      } catch (error) {
        return failed(own, error, root);
      }
    }
    const answered = forwarded && forward(call, forwarded, false).catch((error: unknown) => ({ error }));
    const values = await Promise.all(
      group.fields.map((field) =>
        field.kind === 'forwarded' ? undefined : (given?.get(field) ?? readField(call, field)),
      ),
    );
    const service = await answered;
    if (service && 'size' in service && service.size >= LARGE) await call.held.hold(service, service.size);
    const output: Output & { deferred: DeferredReading[] } = { parts: [], errors: [], deferred: [] };
    let extensions: string | undefined;
    let isNull = false;
    if (service && 'error' in service) {
      output.errors.push({ thrown: service.error, path: [firstOf(own)] });
    } else if (service) {
      output.errors.push(...service.errors);
      ({ extensions } = service);
    }
    for (const [i, field] of group.fields.entries()) {
      const value = values[i] ?? ofService(service, own.indexOf(field)) ?? withoutService(field, root);
      for (const error of value.errors) output.errors.push(error);
      for (const one of value.deferred ?? []) output.deferred.push(one);
      if (!value.parts && !field.isNullable) isNull = true;
      output.parts.push(`${i > 0 ? ',' : ''}${JSON.stringify(field.key)}:`);
      for (const part of value.parts ?? ['null']) output.parts.push(part);
    }
    if (isNull) return { data: null, errors: output.errors, extensions, deferred: [] };
    return filled(call, output, extensions);
  }

  async function forward(call: Call, forwarded: ForwardedFields, isAlone: boolean): Promise<ForwardedAnswer> {
    if (isQuery) {
      const asking = isAlone ? { ask: call.send.bind(call) } : call;
      return askSparingParents(asking, (pages) => forwarded.request(call.variables, pages));
    }
    // Nothing that is read from now on was read before it.
    parts.drains.separate();
    try {
      return await call.send(forwarded.request(call.variables));
    } finally {
      parts.drains.separate();
    }
  }
}

/** The name of the root's type comes along with what the service is asked for, unless nothing else is. */
function isAlone(field: RootField, all: readonly RootField[]): boolean {
  if (field.kind !== 'forwarded' || nameOf(field) !== '__typename') return false;
  return !all.some(
    (other) =>
      other.kind === 'forwarded' &&
      nameOf(other) !== '__typename' &&
      other.collected.deferred === field.collected.deferred,
  );
}

function nameOf({ collected: { nodes } }: RootField): string {
  return nodes[0]!.name.value;
}

function groupsOf(fields: readonly RootField[]): number {
  return new Set(fields.map(({ collected: { deferred } }) => deferred)).size;
}

function forwardable(parts: PlanParts, operation: OperationTypeNode): (name: string) => boolean {
  return (name) =>
    name === '__typename' ||
    (operation === OperationTypeNode.QUERY
      ? !parts.derived.has(name) && !LOCAL.has(name)
      : isAllowed(parts, name));
}

function ofService(
  service: ForwardedAnswer | { readonly error: unknown } | undefined,
  field: number,
): FieldValue | undefined {
  if (!service || 'error' in service) return undefined;
  const { data } = service;
  return { parts: data?.valueOf(field), errors: [], deferred: data?.deferred[field] ?? [] };
}

/** What a forwarded field comes to when there was no answer: only its name is known of the root's type. */
function withoutService(field: RootField, root: GraphQLObjectType): FieldValue {
  const parts = nameOf(field) === '__typename' ? [JSON.stringify(root.name)] : undefined;
  return { parts, errors: [] };
}

function failed(fields: readonly RootField[], error: unknown, root: GraphQLObjectType): OperationAnswer {
  const values = fields.map((field) => ({ field, ...withoutService(field, root) }));
  const data = values.every(({ field, parts }) => parts ?? field.isNullable)
    ? values.map(({ field: { key }, parts = ['null'] }, i) => `${i > 0 ? ',' : ''}${JSON.stringify(key)}:${parts.join('')}`)
    : null;
  const errors = [{ thrown: error, path: [firstOf(fields)] }];
  return { data, errors, extensions: undefined, deferred: [] };
}

/** The key of the first field that had to be asked for. */
function firstOf(fields: readonly RootField[]): string {
  return (fields.find((field) => nameOf(field) !== '__typename') ?? fields[0]!).key;
}

function readField(call: Call, field: Exclude<RootField, { kind: 'forwarded' }>): Promise<FieldValue> | FieldValue {
  if (field.kind === 'read') return field.read(call);
  const { list } = field;
  const open = () => openList(list, call);
  return list.connection ? readConnection(open, [field.key]) : readAll(call, open, [field.key]);
}

async function filled(call: Call, output: Output, extensions: string | undefined): Promise<OperationAnswer> {
  const { parts, errors, deferred = [] } = output.parts.some(isHole) ? await fillHoles(call, output) : output;
  return { data: parts as (string | Buffer)[], errors, extensions, deferred };
}

/** Answered by the gateway alone, from its own schema. */
const LOCAL = new Set(['__schema', '__type', '_service']);

function rootField(
  parts: PlanParts,
  {
    operation,
    fragments,
    shared,
    root,
  }: VariantParts & { readonly shared: PlanParts & { writer: RequestWriter; scope: ShapeScope; operation: WrittenOperation }; root: GraphQLObjectType },
  collected: CollectedField,
): RootField {
  const { key, nodes } = collected;
  const name = nodes[0]!.name.value;
  const definition = root.getFields()[name];
  const field = { key, collected, isNullable: !definition || !isNonNullType(definition.type) };
  if (operation.operation === OperationTypeNode.MUTATION && definition && !isAllowed(parts, name)) {
    const refused = { parts: undefined, errors: [{ thrown: refusedMutation(name), path: [key] }] };
    return { ...field, kind: 'read', read: () => refused };
  }
  if (name === '__typename') return { ...field, isNullable: false, kind: 'forwarded' };
  if (operation.operation !== OperationTypeNode.QUERY) return { ...field, kind: 'forwarded' };
  if (LOCAL.has(name) && (name !== '_service' || parts.derived.has(name))) {
    const read = localField(parts, { operation, fragments, collected, scope: shared.scope });
    return { ...field, kind: 'read', read };
  }
  for (const adapter of parts.adapters) {
    const kind = adapter.all?.field === name ? 'all' : adapter.connection?.field === name ? 'connection' : undefined;
    if (!kind) continue;
    // In a list that comes whole nothing is put off: it would have to be kept for each of its records.
    const defers = shared.scope.defers === true && (kind === 'connection' || isStreamed(shared.scope, nodes));
    const scope = { ...shared.scope, defers };
    return { ...field, kind: 'list', list: listField({ ...shared, scope }, adapter, { kind, key, nodes }) };
  }
  if (!parts.derived.has(name)) return { ...field, kind: 'forwarded' };
  const asked = { definition: definition!, key, nodes };
  if (name === '_entities') {
    const byName = new Map(parts.entities.map((entity) => [entity.type.name, entity]));
    return { ...field, kind: 'read', read: entitiesField(shared, byName, asked) };
  }
  const entity = parts.entities.find((each) => each.field === name)!;
  return { ...field, kind: 'read', read: recordField(shared, entity, asked) };
}

function constant(field: RootField, text: string): RootField {
  const value: FieldValue = { parts: [text], errors: [] };
  return { ...field, kind: 'read', read: () => value };
}

/** Introspection, and the SDL for routers: the same in every call, unless variables are in it. */
function localField(
  { schema, sdl }: PlanParts,
  { operation, fragments, collected, scope }: Pick<VariantParts, 'operation' | 'fragments'> & { collected: CollectedField; scope: ShapeScope },
): (call: Call) => FieldValue {
  const { key, nodes } = collected;
  if (nodes[0]!.name.value === '_service') {
    const type = schema.getType('_Service') as GraphQLObjectType;
    const members = [...collectFields(scope, type, selectionsOf(nodes)).values()].map(
      (field) =>
        `${JSON.stringify(field.key)}:${JSON.stringify(field.nodes[0]!.name.value === 'sdl' ? sdl() : type.name)}`,
    );
    const value: FieldValue = { parts: [`{${members.join(',')}}`], errors: [] };
    return () => value;
  }
  const document: DocumentNode = {
    kind: Kind.DOCUMENT,
    definitions: [
      { ...operation, selectionSet: { kind: Kind.SELECTION_SET, selections: nodes } },
      ...fragments.values(),
    ],
  };
  const read = (variableValues: Readonly<Record<string, unknown>>): FieldValue => {
    const { data } = executeSync({ schema, document, variableValues });
    return { parts: [JSON.stringify(data?.[key] ?? null)], errors: [] };
  };
  if ((operation.variableDefinitions ?? []).length > 0) return ({ variables }) => read(variables.values);
  let once: FieldValue | undefined;
  return () => (once ??= read({}));
}

function forwardedShape(
  scope: ShapeScope,
  root: GraphQLObjectType,
  key: string,
  nodes: CollectedField['nodes'],
): ForwardedShape {
  const name = nodes[0]!.name.value;
  if (name === '__typename') {
    const shape = { kind: 'typename', upstream: scope.upstreamType(root.name), served: root.name } as const;
    return { key, shape, isSilent: false };
  }
  const shape = shapeOf(scope, root.getFields()[name]!.type, selectionsOf(nodes));
  return { key, shape, isSilent: false };
}

/** The derived fields below other objects than the root. */
function holesOf(
  nested: readonly NestedAdapter[],
  shared: Parameters<typeof listField>[0],
): { at: ShapeScope['holeAt'] } {
  const fields = new Map<string, { adapter: NestedAdapter; kind: 'all' | 'connection' }>();
  // They come whole, in whichever part their parent comes.
  const whole = { ...shared, scope: { ...shared.scope, defers: false } };
  for (const adapter of nested) {
    const { parent, all, connection } = adapter;
    if (all) fields.set(`${parent}.${all.field}`, { adapter, kind: 'all' });
    if (connection) fields.set(`${parent}.${connection.field}`, { adapter, kind: 'connection' });
  }
  return {
    at: (type, key, nodes): HoleShape | undefined => {
      const found = fields.get(`${type.name}.${nodes[0]!.name.value}`);
      if (!found) return undefined;
      let made: ListField | undefined;
      const filling: Filling = () => (made ??= listField(whole, found.adapter, { kind: found.kind, key, nodes }));
      return {
        kind: 'hole',
        filling,
        idKey: idOf(type) ? idKey(type.name) : undefined,
        pageKey: inlinedPageKey(type.name, key),
      };
    },
  };
}

