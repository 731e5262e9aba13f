import {
  getNamedType,
  GraphQLFloat,
  GraphQLID,
  GraphQLInt,
  GraphQLString,
  isEnumType,
  type GraphQLInputType,
  type GraphQLOutputType,
} from 'graphql';
import type { UpstreamError } from '../../answers/answer-errors.ts';
import { decodeGlobalId, type GlobalId } from '../../answers/global-id.ts';
import type { Reading } from '../../answers/read.ts';
import { Json, parseJson } from '../../json.ts';
import type { Entity, NodeInterface } from '../../schema/derived.ts';
import type { ListRecord } from '../output.ts';

/** An id as the upstream takes it, as JSON. */
export type RecordId = string;

/** Finds the records of one type by their ids, with one selection of their fields. */
export interface RecordLookup {
  /** Equal for lookups that send the same to the upstream. */
  readonly name: string;
  /** By how many bytes the caller's aliases lengthen each record. */
  readonly aliasBytes: number;
  /** @returns a result for each id, in their order; undefined for an id without a record */
  find(ids: readonly RecordId[]): Promise<LookupResults>;
}

export type LookupResults = readonly (LookupResult | undefined)[];

export type LookupResult = LoadedRecord | FailedLookup;

/** It is unknown whether there is such a record. No rejected promise: thousands of those would be slow. */
interface FailedLookup {
  readonly failure: Error;
}

interface LoadedRecord {
  /** Bytes if a scanner read the record. */
  readonly record: ListRecord | Reading | Buffer;
  readonly unplacedErrors: readonly UpstreamError[];
}

export function failedLookup(error: unknown): FailedLookup {
  const failure =
    error instanceof Error ? error : new Error('The lookup failed.', { cause: error });
  return { failure };
}

/** The record that a caller refers to, or a message that says why the reference is invalid. */
export type RecordReference = { readonly entity: Entity; readonly id: RecordId } | string;

/**
 * Reads a reference, as `uncoercedArgument` returns it. Messages repeat nothing of it except the name of its type. Returns a
 * message instead of throwing an error: a body of one megabyte can hold half a million references.
 */
export type ReadReference = (reference: unknown) => RecordReference;

/** Reads the id that `person(id)` takes: the service's own, or a global one if there are such ids. */
export function idReader(entity: Entity, nodes: NodeInterface | undefined): ReadReference {
  return (value) => {
    const global = nodes && typeof value === 'string' ? decodeGlobalId(value) : undefined;
    return global ? readGlobal(global, entity) : readOwn(value, entity);
  };
}

/** Reads the global id that `node(id)` takes. */
export function nodeReader(
  entities: readonly Entity[],
  { recordId, implementedBy }: NodeInterface,
): ReadReference {
  const byName = new Map(
    entities
      .filter(({ type }) => implementedBy.has(type.name))
      .map((entity) => [entity.type.name, entity]),
  );
  return (value) => {
    const global = typeof value === 'string' ? decodeGlobalId(value) : undefined;
    const entity = global && byName.get(global.type);
    if (entity) return readGlobal(global, entity);
    return global
      ? 'No record of this type can be found by its id here. Request it through the field that returned it.'
      : `This is not a global id. Pass the \`id\` of a record; the field for its type, if there is one, takes its \`${recordId}\` too.`;
  };
}

/** Reads a representation of an entity (Federation, `_Any`). */
export function representationReader(
  entities: readonly Entity[],
  nodes: NodeInterface | undefined,
): ReadReference {
  const byName = new Map(entities.map((entity) => [entity.type.name, entity]));
  return (representation) => {
    if (
      typeof representation !== 'object' ||
      representation === null ||
      Array.isArray(representation)
    ) {
      return 'A representation must be an object with `__typename` and `id`.';
    }
    const { __typename: type, ...keys } = representation as Readonly<Record<string, unknown>>;
    if (typeof type !== 'string') {
      return 'This representation has no `__typename`, which names its type.';
    }
    const entity = byName.get(type);
    if (!entity) {
      const name = NAME.test(type) ? type : 'of that name';
      return `There is no entity ${name} here. The SDL of this subgraph names those that there are.`;
    }
    if (!entity.lookup) {
      return `No ${type} can be found by its id here: its key is \`resolvable: false\`. Ask another subgraph.`;
    }
    const recordId = nodes && keys[nodes.recordId];
    if (recordId !== undefined && recordId !== null) return readOwn(recordId, entity);
    const { id } = keys;
    if (id === undefined || id === null) {
      return `This representation of a ${type} has no \`id\`, which is its key.`;
    }
    return idReader(entity, nodes)(id);
  };
}

/** A GraphQL name that is short enough to be repeated in a message. */
const NAME = /^[_A-Za-z]\w{0,99}$/;

function readGlobal({ type, id }: GlobalId, entity: Entity): RecordReference {
  if (type !== entity.type.name) {
    return `This is the global id of another type. Pass the id of a ${entity.type.name}.`;
  }
  return readOwn(isWrittenAsText(entity.idType) ? id : valueIn(id), entity);
}

/** As in `globalIdJson`. */
function isWrittenAsText(type: GraphQLOutputType): boolean {
  return (
    [GraphQLID, GraphQLString, GraphQLInt].some((scalar) => scalar === type) || isEnumType(type)
  );
}

function valueIn(text: string): unknown {
  const json = parseJson(text);
  return json instanceof Json ? json.value : undefined;
}

function readOwn(value: unknown, entity: Entity): RecordReference {
  const { lookup, idType } = entity;
  const type = lookup?.kind === 'id' ? lookup.argument.type : idType;
  const id = readId(value, type);
  if (id !== undefined) return { entity, id };
  return `The id of a ${entity.type.name} must be of the type ${String(type).replace('!', '')}, and this one is not.`;
}

/**
 * Converts an id to the upstream's scalar: one subgraph sends 12, another "12".
 *
 * @returns undefined for a value that cannot be such an id
 */
function readId(value: unknown, type: GraphQLInputType | GraphQLOutputType): RecordId | undefined {
  const number = numberIn(value);
  const text = typeof value === 'string' ? value : undefined;
  const named = getNamedType(type);
  if (named === GraphQLInt) return intIn(number ?? CANONICAL_INT.exec(text ?? '')?.[0]);
  if (named === GraphQLFloat) return number;
  if (named === GraphQLID || named === GraphQLString) {
    return asString(number === undefined ? text : digitsOf(number));
  }
  if (isEnumType(named)) return named.getValue(text ?? '') ? asString(text) : undefined;
  return number ?? asString(text);
}

/** Returns a number as it was written. */
function numberIn(value: unknown): string | undefined {
  if (value instanceof Json) return value.raw;
  // A whole number that JavaScript cannot represent has already lost digits.
  const isKnown = typeof value === 'number' && Number.isSafeInteger(Math.trunc(value));
  return isKnown ? String(value) : undefined;
}

const CANONICAL_INT = /^(0|-?[1-9]\d*)$/;

function intIn(text: string | undefined): string | undefined {
  const number = Number(text);
  return (number | 0) === number ? String(number) : undefined;
}

/** Returns the digits of a whole number, even of one that JavaScript cannot represent. */
function digitsOf(number: string): string | undefined {
  const value = Number(number);
  if (Number.isSafeInteger(value)) return String(value);
  return DIGITS.test(number) ? number : undefined;
}

const DIGITS = /^-?\d+$/;

function asString(text: string | undefined): string | undefined {
  return text === undefined ? undefined : JSON.stringify(text);
}
