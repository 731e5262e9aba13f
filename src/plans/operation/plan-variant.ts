import { OperationTypeNode, type GraphQLObjectType } from 'graphql';
import {
  collectFields,
  selectionsOf,
  type CollectedField,
  type DeferUse,
} from '../../answers/collect-fields.ts';
import type { AnswerError } from '../../answers/errors.ts';
import type { DeferredReading } from '../../answers/read.ts';
import { shapeOf, type ShapeScope } from '../../answers/shape.ts';
import type { Call } from '../call.ts';
import {
  forwardedFields,
  type ForwardedAnswer,
  type ForwardedFields,
  type ForwardedShape,
} from '../forwarded/forwarded-fields.ts';
import { readAll } from '../lists/all-field.ts';
import { readConnection } from '../lists/connection-field.ts';
import { openList } from '../lists/list-field.ts';
import { fillHoles, holesOf, isHole } from '../lists/nested-lists.ts';
import type { FieldValue, OperationAnswer, Output, Part } from '../output.ts';
import {
  askSparingParents,
  type RequestWriter,
  type WrittenOperation,
} from '../requests/request-text.ts';
import { LOCAL, rootField } from './root-field.ts';
import { checkBelowRoot, isAllowed, onlyForwarded } from './root-rules.ts';
import type { GivenValues, PlanParts, RootField, Variant, VariantParts } from './variant.ts';

/** Bytes. Smaller answers of the service are not counted: so much is in the buffers of a socket anyway. */
const LARGE = 65_536;

export function planVariant(parts: PlanParts, variant: VariantParts): Variant {
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
    inlinePages: (inlined, wanted) =>
      parts.inlining.inline(inlined, { ...scope, variables, wanted }),
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
  const fields = planned.map((field) =>
    isAlone(field, planned) ? constant(field, JSON.stringify(root.name)) : field,
  );
  const isForwarded = forwardable(parts, operation.operation);
  const groups = new Map(
    Array.from(
      Map.groupBy(fields, ({ collected: { deferred } }) => deferred),
      ([use, some]) => {
        const own = some.filter(({ kind }) => kind === 'forwarded');
        const isAll = own.length === fields.length;
        // What is skipped in this call has to be left out too, where the service does not know it.
        const selections =
          groupsOf(fields) > 1
            ? own.flatMap(({ collected: { nodes } }) => nodes)
            : onlyForwarded(isForwarded, operation.selectionSet.selections, fragments);
        const shapes = own.map(({ key, collected: { nodes } }) =>
          forwardedShape(scope, root, key, nodes),
        );
        const forwarded =
          own.length > 0
            ? forwardedFields({ writer, operation: written, selections, fields: shapes })
            : undefined;
        return [use, { fields: some, own, isAll: isAll && own.length > 0, forwarded }] as const;
      },
    ),
  );

  const isOneList = fields.length === 1 && fields[0]!.kind === 'list' && !variant.hasNested;

  return { size, fields, answer };

  async function answer(call: Call, use?: DeferUse, given?: GivenValues): Promise<OperationAnswer> {
    const group = groups.get(use);
    if (!group) return { data: [], errors: [], extensions: undefined, deferred: [] };
    if (isOneList) call.alone();
    const { own, isAll, forwarded } = group;
    if (isAll) {
      try {
        const service = await forward(call, forwarded!, true);
        const { data, errors, extensions } = service;
        if (service.size >= LARGE) await call.held.hold(service, service.size);
        if (!data) return { data, errors, extensions, deferred: [] };
        const output: Output = {
          parts: data.whole as Part[],
          errors: errors as AnswerError[],
          deferred: data.deferred.flat(),
        };
        return await filled(call, output, extensions);
      } catch (error) {
        return failed(own, error, root);
      }
    }
    const answered =
      forwarded && forward(call, forwarded, false).catch((error: unknown) => ({ error }));
    const values = await Promise.all(
      group.fields.map(async (field) =>
        field.kind === 'forwarded' ? undefined : (given?.get(field) ?? readField(call, field)),
      ),
    );
    const service = await answered;
    if (service && 'size' in service && service.size >= LARGE)
      await call.held.hold(service, service.size);
    const output: Output & { deferred: DeferredReading[] } = {
      parts: [],
      errors: [],
      deferred: [],
    };
    let extensions: string | undefined;
    let isNull = false;
    if (service && 'error' in service) {
      output.errors.push({ thrown: service.error, path: [firstOf(own)] });
    } else if (service) {
      output.errors.push(...service.errors);
      ({ extensions } = service);
    }
    for (const [i, field] of group.fields.entries()) {
      const value =
        values[i] ?? ofService(service, own.indexOf(field)) ?? withoutService(field, root);
      for (const error of value.errors) output.errors.push(error);
      for (const one of value.deferred ?? []) output.deferred.push(one);
      if (!value.parts && !field.isNullable) isNull = true;
      output.parts.push(`${i > 0 ? ',' : ''}${JSON.stringify(field.key)}:`);
      for (const part of value.parts ?? ['null']) output.parts.push(part);
    }
    if (isNull) return { data: null, errors: output.errors, extensions, deferred: [] };
    return filled(call, output, extensions);
  }

  async function forward(
    call: Call,
    forwarded: ForwardedFields,
    isOnly: boolean,
  ): Promise<ForwardedAnswer> {
    if (isQuery) {
      const asking = isOnly ? { ask: call.send.bind(call) } : call;
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
  const name = nameWithoutService(field, root);
  return { parts: name === undefined ? undefined : [name], errors: [] };
}

function nameWithoutService(field: RootField, root: GraphQLObjectType): string | undefined {
  return nameOf(field) === '__typename' ? JSON.stringify(root.name) : undefined;
}

function failed(
  fields: readonly RootField[],
  error: unknown,
  root: GraphQLObjectType,
): OperationAnswer {
  const values = fields.map((field) => ({ field, text: nameWithoutService(field, root) }));
  const data = values.every(({ field, text }) => text !== undefined || field.isNullable)
    ? values.map(
        ({ field: { key }, text = 'null' }, i) =>
          `${i > 0 ? ',' : ''}${JSON.stringify(key)}:${text}`,
      )
    : null;
  const errors = [{ thrown: error, path: [firstOf(fields)] }];
  return { data, errors, extensions: undefined, deferred: [] };
}

/** The key of the first field that had to be asked for. */
function firstOf(fields: readonly RootField[]): string {
  return (fields.find((field) => nameOf(field) !== '__typename') ?? fields[0]!).key;
}

function readField(
  call: Call,
  field: Exclude<RootField, { kind: 'forwarded' }>,
): Promise<FieldValue> | FieldValue {
  if (field.kind === 'read') return field.read(call);
  const { list } = field;
  const open = () => openList(list, call);
  return list.connection ? readConnection(open, [field.key]) : readAll(call, open, [field.key]);
}

async function filled(
  call: Call,
  output: Output,
  extensions: string | undefined,
): Promise<OperationAnswer> {
  const {
    parts,
    errors,
    deferred = [],
  } = output.parts.some(isHole) ? await fillHoles(call, output) : output;
  return { data: parts as (string | Buffer)[], errors, extensions, deferred };
}

function forwardedShape(
  scope: ShapeScope,
  root: GraphQLObjectType,
  key: string,
  nodes: CollectedField['nodes'],
): ForwardedShape {
  const name = nodes[0]!.name.value;
  if (name === '__typename') {
    const shape = {
      kind: 'typename',
      upstream: scope.upstreamType(root.name),
      served: root.name,
    } as const;
    return { key, shape, isSilent: false };
  }
  const shape = shapeOf(scope, root.getFields()[name]!.type, selectionsOf(nodes));
  return { key, shape, isSilent: false };
}

function constant(field: RootField, text: string): RootField {
  const value: FieldValue = { parts: [text], errors: [] };
  return { ...field, kind: 'read', read: () => value };
}
