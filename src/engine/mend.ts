import { getNamedType, isCompositeType, type GraphQLCompositeType } from 'graphql';
import { hasFields, objectTypesOf } from '../schema/derived.ts';
import { errorsBelow, type AnswerError, type Path } from './answer.ts';
import type { Call } from './call.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import { parentIdKey, type NestedFiller, type PreparedOperation } from './prepared-operation.ts';
import { fieldsBelow, type SelectedField } from './selected-fields.ts';
import { failed } from './service-answer.ts';
import type { Shared } from './shared.ts';

/*
 * What has to be changed in a value of the service before a caller gets it
 *
 * The service has completed its values, so they are not looked at one by one. Only the places are visited where a
 * `__typename` has another name here, or where a nested list belongs; most selections have none.
 */

/** The places to visit in an object. At least one. */
export interface Mend {
  readonly places: readonly Place[];
  /** Whether there are nested lists in it, or below. */
  readonly isFilled: boolean;
}

interface Place {
  readonly key: string;
  /** The served names of types, if it is a `__typename` whose value may have another name here. */
  readonly names?: ReadonlyMap<string, string>;
  /** Whether the gateway has selected it for itself. */
  readonly isHidden?: boolean;
  /** Fillers of nested lists, by the service's names of the types that have them. */
  readonly nested?: ReadonlyMap<string, Nested>;
  readonly below?: Mend;
}

interface Nested {
  readonly filler: NestedFiller;
  /** The key of the parent's id. */
  readonly idKey: string;
}

/**
 * Compiles what has to be changed in the values of a selection; undefined if that is nothing.
 *
 * @param types that the object on which the fields are selected may have
 */
export function compileMend(
  shared: Shared,
  prepared: PreparedOperation,
  types: readonly GraphQLCompositeType[],
  fields: readonly SelectedField[],
): Mend | undefined {
  if (shared.servedNames.size === 0 && prepared.nested.size === 0) return undefined;
  const places = fields.flatMap((field) => placeOf(shared, prepared, types, field) ?? []);
  if (places.length === 0) return undefined;
  return { places, isFilled: places.some(({ nested, below }) => nested ?? below?.isFilled) };
}

/**
 * The keys that the gateway has selected for itself in an object of the service, such as the id of a parent. Not those of
 * requirements (`_rsNeeds_`), which added fields still read.
 */
const HIDDEN = '_rs_';

function placeOf(
  shared: Shared,
  prepared: PreparedOperation,
  types: readonly GraphQLCompositeType[],
  field: SelectedField,
): Place | undefined {
  const { schema, served, servedNames } = shared;
  const { key, name, uses } = field;
  if (key.startsWith(HIDDEN)) return { key, isHidden: true };
  if (uses.some(({ node }) => prepared.nested.has(node))) {
    return { key, nested: nestedAt(shared, prepared, field) };
  }
  if (name === '__typename') {
    const isRenamed = types
      .flatMap((type) => objectTypesOf(schema, type))
      .some((type) => servedNames.has(served.upstreamType(type.name)));
    return isRenamed ? { key, names: servedNames } : undefined;
  }
  const inner = uses.flatMap(({ on, node }) =>
    (on === undefined ? types : [schema.getType(on)]).flatMap((parent) => {
      const of = hasFields(parent) && getNamedType(parent.getFields()[node.name.value]?.type);
      return of && isCompositeType(of) ? [of] : [];
    }),
  );
  const below =
    inner.length > 0
      ? compileMend(shared, prepared, [...new Set(inner)], fieldsBelow(field, prepared.fragments))
      : undefined;
  return below && { key, below };
}

function nestedAt({ schema, served }: Shared, prepared: PreparedOperation, field: SelectedField) {
  const uses = field.uses.flatMap((use) => {
    const nested = prepared.nested.get(use.node);
    return nested ? [{ derived: nested.derived, use: { ...use, node: nested.node } }] : [];
  });
  const fillers = new Map<string, Nested>();
  for (const [derived, same] of Map.groupBy(uses, (each) => each.derived)) {
    const of = { key: field.key, name: derived.name, uses: same.map(({ use }) => use) };
    const nested = {
      filler: prepared.compileNested(derived, of),
      idKey: parentIdKey(derived.parent),
    };
    const parent = schema.getType(derived.parent) as GraphQLCompositeType;
    for (const { name } of objectTypesOf(schema, parent)) {
      fillers.set(served.upstreamType(name), nested);
    }
  }
  return fillers;
}

/** A nested list that belongs at a place of a value. */
interface Fill extends Nested {
  readonly holder: JsonObject;
  readonly key: string;
  /** The id of the parent as JSON. */
  readonly parent: string;
  /** Of the nested list, from where the mending began. */
  readonly path: Path;
}

/** Mends a value in place, and fills its nested lists in. @returns the errors in these */
export async function mended(
  mending: Mend,
  value: unknown,
  call: Call,
): Promise<readonly AnswerError[]> {
  const fills: Fill[] = [];
  mend(mending, value, [], fills);
  // Those of several parents at the same time, so that they share requests.
  const errors = await Promise.all(
    fills.map(async ({ filler, parent, holder, key, path }) => {
      const filled = await filler.answer(call, parent).catch(failed);
      holder[key] = filled.value && (await filled.value.parse());
      return errorsBelow(path, filled.errors);
    }),
  );
  return errors.flat();
}

/** @param fills receives the nested lists that belong into the value. Each is null until it is filled */
function mend(mending: Mend, value: unknown, path: Path, fills: Fill[]): void {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      // Paths are only needed for nested lists.
      mend(mending, item, mending.isFilled ? [...path, index] : path, fills);
    }
    return;
  }
  if (!isJsonObject(value)) return;
  for (const { key, names, nested, below } of mending.places) {
    const found = value[key];
    if (found === undefined || found === null) continue;
    if (names) value[key] = names.get(found as string) ?? found;
    // Types of a union may have other fields under this key: theirs are no names of these types.
    const place = typeof found === 'string' ? nested?.get(found) : undefined;
    if (place) {
      const parent = JSON.stringify(value[place.idKey] ?? null);
      fills.push({ ...place, holder: value, key, parent, path: [...path, key] });
      value[key] = null;
    }
    if (below) mend(below, found, below.isFilled ? [...path, key] : path, fills);
  }
  for (const { key, isHidden } of mending.places) if (isHidden) delete value[key];
}
