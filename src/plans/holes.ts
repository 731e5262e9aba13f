import { setImmediate as nextTurn } from 'node:timers/promises';
import { inlinedPageKey, type Path } from '../answers/errors.ts';
import type { Hole } from '../answers/read.ts';
import type { HoleShape, ShapeScope } from '../answers/shape.ts';
import type { NestedAdapter } from '../schema/derived.ts';
import { idOf } from '../schema/derivation/reach-parent.ts';
import { readAll, type FieldValue } from './all-field.ts';
import type { Call } from './call.ts';
import { readConnection } from './connection-field.ts';
import { listField, openList, type ListField } from './list-field.ts';
import type { Output, Part } from './list-record.ts';
import { idKey } from './record-identity.ts';

/** Fills a derived field below another object than the root; made when it is first needed. */
export type Filling = () => ListField;

/**
 * Fills what is derived below other objects: the lists of all parents at the same time, and then what is derived below
 * their records.
 */
export async function fillHoles(call: Call, output: Output): Promise<Output> {
  const { parts, errors, deferred } = output;
  if (!parts.some(isHole)) return output;
  let begun = 0;
  let turn = Promise.resolve();
  const filled = await Promise.all(
    parts.map(async (part): Promise<Output | string | Buffer> => {
      if (!isHole(part)) return part;
      begun += 1;
      // One operation may have ten thousand of them: others come to their turn in between.
      if (begun % AT_A_TIME === 0) turn = turn.then(() => nextTurn());
      await turn;
      const value = await fill(call, part);
      return fillHoles(call, { parts: [...(value.parts ?? ['null'])], errors: [...value.errors] });
    }),
  );
  const all: Output = { parts: [], errors: [...errors], deferred };
  for (const part of filled) {
    if (typeof part === 'string' || Buffer.isBuffer(part)) all.parts.push(part);
    else {
      for (const inner of part.parts) all.parts.push(inner);
      for (const error of part.errors) all.errors.push(error);
    }
  }
  return all;
}

const AT_A_TIME = 50;

function fill(call: Call, hole: Hole): Promise<FieldValue> {
  const path: Path = hole.path;
  const field = (hole.shape.filling as Filling)();
  const list = () => openList(field, call, hole);
  return field.connection ? readConnection(list, path) : readAll(call, list, path);
}

export function isHole(part: Part): part is Hole {
  return typeof part !== 'string' && !Buffer.isBuffer(part);
}

/** The derived fields below other objects than the root. */
export function holesOf(
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
      const filling: Filling = () =>
        (made ??= listField(whole, found.adapter, { kind: found.kind, key, nodes }));
      return {
        kind: 'hole',
        filling,
        idKey: idOf(type) ? idKey(type.name) : undefined,
        pageKey: inlinedPageKey(type.name, key),
      };
    },
  };
}
