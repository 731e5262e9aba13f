import { setImmediate as nextTurn } from 'node:timers/promises';
import { getArgumentValues } from '@graphql-tools/utils';
import {
  defaultFieldResolver,
  getNullableType,
  isListType,
  isObjectType,
  SchemaMetaFieldDef,
  TypeMetaFieldDef,
  visit,
  type FieldNode,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  type GraphQLLeafType,
  type SelectionNode,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import {
  collectFields,
  type CollectedField,
  type SelectionScope,
} from '../../answers/collect-fields.ts';
import { selectionsOf } from '../../selections.ts';
import type { Call } from '../call.ts';
import type { Part } from '../../answers/read.ts';
import type { FieldValue } from '../output.ts';

/** The root fields that the gateway answers from its own schema: introspection and `_service`. */
export const LOCAL = new Set(['__schema', '__type', '_service']);

export interface LocalFields {
  /** Plans one of these fields. */
  plan(scope: SelectionScope, field: CollectedField): (call: Call) => Promise<FieldValue>;
}

/** The size of all values of introspection fields that are kept together, in bytes. */
const MAX_KEPT = 8 * 1024 * 1024;
/** In bytes. Smaller values are written again: an entry would take more memory than the value. */
const SMALLEST_KEPT = 4 * 1024;
/** Characters of one piece. */
const PIECE = 16 * 1024;

/**
 * Answers are made of pieces, one in each turn of the event loop for all callers together: an introspection of a large
 * schema takes a tenth of a second, and an operation may select thirty. Pieces are held like those of the service's
 * answers, and the latest are kept.
 *
 * @param sdl for `_service`
 */
export function createLocalFields(schema: GraphQLSchema, sdl: () => string): LocalFields {
  const kept = new LRUCache<string, readonly Buffer[]>({
    maxSize: MAX_KEPT,
    sizeCalculation: (pieces, key) =>
      pieces.reduce((size, piece) => size + piece.length, 2 * key.length),
  });
  /** Values that are being written. Each promise is resolved when the writing ends, whether the value is kept or not. */
  const begun = new Map<string, Promise<void>>();
  let planned = 0;
  let turn: Promise<void> = Promise.resolve();
  const waitForTurn = () => (turn = turn.then(nextTurn));
  let sdlPiece: Buffer | undefined;

  return {
    plan: (scope, { key, nodes }) => {
      const name = nodes[0]!.name.value;
      if (name === '_service') return planService(scope, key, nodes);
      const definition = name === '__schema' ? SchemaMetaFieldDef : TypeMetaFieldDef;
      const names = variablesOf(scope, nodes);
      const id = (planned += 1);
      const field = { key, definition, node: nodes[0]!, selections: selectionsOf(nodes) };
      return async (call) => {
        const { values } = call.variables;
        const texts = () => writeValue({ scope, schema, values }, field);
        const keptAs = `${id} ${JSON.stringify(names.map((variable) => values[variable]))}`;
        try {
          return { parts: await knownOrWritten(call, keptAs, texts), errors: [] };
        } catch (error) {
          return { parts: undefined, errors: [{ thrown: error, path: [key] }] };
        }
      };
    },
  };

  async function knownOrWritten(
    call: Call,
    keptAs: string,
    texts: () => Iterable<string>,
  ): Promise<readonly Buffer[]> {
    for (let other = begun.get(keptAs); other; other = begun.get(keptAs)) {
      await other;
      call.signal.throwIfAborted();
    }
    const known = kept.get(keptAs);
    for (const piece of known ?? []) await call.hold(piece, piece.length);
    if (known) return known;
    const { promise, resolve } = Promise.withResolvers<void>();
    begun.set(keptAs, promise);
    try {
      const pieces: Buffer[] = [];
      let size = 0;
      for (const text of texts()) {
        const piece = Buffer.from(text);
        pieces.push(piece);
        size += piece.length;
        await call.hold(piece, piece.length);
        await waitForTurn();
        call.signal.throwIfAborted();
      }
      if (size >= SMALLEST_KEPT) kept.set(keptAs, pieces.map(alone));
      return pieces;
    } finally {
      begun.delete(keptAs);
      resolve();
    }
  }

  function planService(scope: SelectionScope, name: string, nodes: readonly FieldNode[]) {
    const type = schema.getType('_Service') as GraphQLObjectType;
    const { fields, refusal } = collectFields(scope, type, selectionsOf(nodes));
    if (refusal) {
      const refused = { parts: undefined, errors: [{ thrown: refusal, path: [name] }] };
      return () => Promise.resolve(refused);
    }
    const piece = (sdlPiece ??= Buffer.from(JSON.stringify(sdl())));
    const parts: Part[] = ['{'];
    for (const { key, nodes: selected } of fields.values()) {
      parts.push(`${parts.length > 1 ? ',' : ''}${JSON.stringify(key)}:`);
      parts.push(selected[0]!.name.value === 'sdl' ? piece : JSON.stringify(type.name));
    }
    const value: FieldValue = { parts: [...parts, '}'], errors: [] };
    const isSelected = parts.includes(piece);
    return async (call: Call) => {
      if (isSelected) await call.hold(piece, piece.length);
      return value;
    };
  }
}

/** Copies a small buffer, which would keep alive the pool that it shares with others. */
function alone(piece: Buffer): Buffer {
  if (piece.buffer.byteLength === piece.length) return piece;
  const copy = Buffer.allocUnsafeSlow(piece.length);
  piece.copy(copy);
  return copy;
}

/** The variables that the value depends on, apart from those of `@skip` and `@include`. */
function variablesOf(
  { fragments }: SelectionScope,
  nodes: readonly FieldNode[],
): readonly string[] {
  const names = new Set<string>();
  for (const node of [...nodes, ...fragments.values()]) {
    visit(node, {
      Directive: () => false,
      Variable: ({ name }) => void names.add(name.value),
    });
  }
  return [...names];
}

interface Introspected {
  readonly scope: SelectionScope;
  readonly schema: GraphQLSchema;
  /** Of variables. */
  readonly values: Readonly<Record<string, unknown>>;
}

interface IntrospectionField {
  readonly key: string;
  /** Undefined for `__typename`. */
  readonly definition: GraphQLField<unknown, unknown> | undefined;
  readonly node: FieldNode;
  readonly selections: readonly SelectionNode[];
}

/** Writes the value of a root field as JSON, in pieces: graphql-js could execute it only in one go. */
function* writeValue(
  { scope, schema, values }: Introspected,
  root: IntrospectionField,
): Generator<string, void, undefined> {
  /** Each place of the selection has one type, since introspection has no abstract ones. */
  const collected = new Map<readonly SelectionNode[], readonly IntrospectionField[]>();
  const info = (fieldName: string) => ({ schema, fieldName }) as GraphQLResolveInfo;
  let text = '';
  yield* writeField(root, undefined);
  yield text;

  function* writeField(
    { definition, node, selections }: IntrospectionField,
    of: unknown,
  ): Generator<string, void, undefined> {
    const { type, resolve = defaultFieldResolver, name } = definition!;
    const args = getArgumentValues(definition!, node, values);
    yield* write(type, resolve(of, args, undefined, info(name)), selections);
  }

  function* write(
    type: GraphQLOutputType,
    value: unknown,
    selections: readonly SelectionNode[],
  ): Generator<string, void, undefined> {
    const inner = getNullableType(type);
    if (value === null || value === undefined) text += 'null';
    else if (isListType(inner)) {
      text += '[';
      let separator = '';
      for (const element of value as Iterable<unknown>) {
        text += separator;
        separator = ',';
        yield* write(inner.ofType, element, selections);
      }
      text += ']';
    } else if (isObjectType(inner)) {
      text += '{';
      let separator = '';
      for (const field of fieldsOf(inner, selections)) {
        text += `${separator}${field.key}:`;
        separator = ',';
        if (field.definition) yield* writeField(field, value);
        else text += JSON.stringify(inner.name);
      }
      text += '}';
    } else text += JSON.stringify((inner as GraphQLLeafType).serialize(value));
    if (text.length < PIECE) return;
    yield text;
    text = '';
  }

  function fieldsOf(
    type: GraphQLObjectType,
    selections: readonly SelectionNode[],
  ): readonly IntrospectionField[] {
    const known = collected.get(selections);
    if (known) return known;
    const definitions = type.getFields();
    const selected = collectFields(scope, type, selections);
    if (selected.refusal) throw selected.refusal;
    const fields = Array.from(selected.fields.values(), ({ key, nodes }) => ({
      key: JSON.stringify(key),
      definition: definitions[nodes[0]!.name.value],
      node: nodes[0]!,
      selections: selectionsOf(nodes),
    }));
    collected.set(selections, fields);
    return fields;
  }
}
