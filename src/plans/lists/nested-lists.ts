import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FieldNode } from 'graphql';
import { inlinedPageKey, type Path } from '../../answers/answer-errors.ts';
import type { Placeholder } from '../../answers/reading.ts';
import { selectionsOf } from '../../answers/collect-fields.ts';
import {
  keyBytesOf,
  shapeOf,
  type PlaceholderShape,
  type ShapeScope,
} from '../../answers/shape.ts';
import { idOf, type NestedAdapter } from '../../schema/derived.ts';
import type { Call } from '../call.ts';
import {
  isFilled,
  isPlaceholder,
  type FieldValue,
  type FilledOutput,
  type Output,
} from '../output.ts';
import { idKey } from '../pages/record-identity.ts';
import { placeBelowRoot } from '../requests/field-places.ts';
import { readAll } from './all-field.ts';
import { readConnection } from './connection-field.ts';
import { listField, openList, type ListField } from './list-field.ts';

/** Plans the derived field of a nested list, on first use. */
type Filling = () => ListField;

/**
 * Fills in the derived fields of nested lists: first the lists of all parents, at the same time, then the lists nested
 * in their records.
 */
export async function fillPlaceholders(call: Call, output: Output): Promise<FilledOutput> {
  if (isFilled(output)) return output;
  const { parts, errors, deferred } = output;
  let begun = 0;
  let turn = Promise.resolve();
  const filled = await Promise.all(
    parts.map(async (part): Promise<FilledOutput | string | Buffer> => {
      if (!isPlaceholder(part)) return part;
      begun += 1;
      // An operation may have ten thousand placeholders. Other requests are served between batches of them.
      if (begun % BATCH === 0) turn = turn.then(() => nextTurn());
      await turn;
      const value = await fill(call, part);
      return fillPlaceholders(call, {
        parts: [...(value.parts ?? ['null'])],
        errors: [...value.errors],
      });
    }),
  );
  const all: FilledOutput = { parts: [], errors: [...errors], deferred };
  for (const part of filled) {
    if (typeof part === 'string' || Buffer.isBuffer(part)) all.parts.push(part);
    else {
      for (const inner of part.parts) all.parts.push(inner);
      for (const error of part.errors) all.errors.push(error);
    }
  }
  return all;
}

const BATCH = 50;

function fill(call: Call, placeholder: Placeholder): Promise<FieldValue> {
  const path: Path = placeholder.path;
  const field = (placeholder.shape.filling as Filling)();
  const list = () => openList(field, call, placeholder);
  return field.connection ? readConnection(list, path) : readAll(call, list, path);
}

export interface NestedPlaceholders {
  /** Returns a placeholder for a derived field of a nested list, which the shape of an answer holds in its place. */
  readonly at: ShapeScope['placeholderAt'];
  /** By how many bytes aliases lengthen each record of the `all…` field with the longest ones. */
  readonly aliasBytes: () => number;
}

export function nestedPlaceholders(
  nested: readonly NestedAdapter[],
  shared: Parameters<typeof listField>[0],
): NestedPlaceholders {
  const fields = new Map<string, { adapter: NestedAdapter; kind: 'all' | 'connection' }>();
  // Nothing below them is deferred: they are sent whole, together with their parent.
  const whole = { ...shared, scope: { ...shared.scope, defers: false } };
  /** By the node that selects the field, which may be in the shapes of several types. */
  const aliasBytes = new Map<FieldNode, number>();
  for (const adapter of nested) {
    const { parent, all, connection } = adapter;
    if (all) fields.set(`${parent}.${all.field}`, { adapter, kind: 'all' });
    if (connection) fields.set(`${parent}.${connection.field}`, { adapter, kind: 'connection' });
  }
  return {
    at: (type, key, nodes): PlaceholderShape | undefined => {
      const found = fields.get(`${type.name}.${nodes[0]!.name.value}`);
      if (!found) return undefined;
      let made: ListField | undefined;
      const filling: Filling = () =>
        (made ??= listField(whole, found.adapter, {
          kind: found.kind,
          key,
          nodes,
          places: placeBelowRoot(nodes, whole.operation.fragments),
        }));
      if (found.kind === 'all' && !aliasBytes.has(nodes[0]!)) {
        const record = shapeOf(whole.scope, found.adapter.recordType, selectionsOf(nodes));
        aliasBytes.set(nodes[0]!, keyBytesOf([record]).ofAliases);
      }
      return {
        kind: 'placeholder',
        filling,
        idKey: idOf(type) ? idKey(type.name) : undefined,
        pageKey: inlinedPageKey(type.name, key),
      };
    },
    aliasBytes: () => Math.max(0, ...aliasBytes.values()),
  };
}
