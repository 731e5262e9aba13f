import { GraphQLError, type ExecutionResult } from 'graphql';
import {
  isOfService,
  writeError,
  writeErrors,
  type AnswerError,
  type Mask,
  type UpstreamError,
} from './answer-errors.ts';
import {
  payloadLists,
  writeEntries,
  type IncrementalFormat,
  type Payload,
  type PayloadEntry,
  type PayloadList,
  type WholeAnswer,
} from './write-answer.ts';

/**
 * A result whose values are made from bytes on demand: plugins can read, copy and change it, and what they did not
 * change is sent as the service wrote it.
 *
 *     createResult(answer)  { data, errors, extensions }    own enumerable accessors, each present only if it has a value
 *            |                  read: the value is made from the bytes, and kept
 *            |                  assigned: the accessor becomes a plain property
 *     writeResult(result)   not read or changed: the bytes
 *                           otherwise member by member: the bytes of each value that is still as it was made, also in
 *                           a copy such as `{ ...result, errors }`; JSON.stringify of every other value
 *
 * The bytes matter for more than speed: JavaScript cannot hold all numbers that a service may write. A value was changed
 * if it would not be written like one made anew; so a change deep inside of it is sent too.
 *
 * Errors are GraphQL errors whose `originalError` is what was thrown: the operator's plugins may report it. They are
 * masked when they are written, those of plugins too.
 */
export function createResult(answer: WholeAnswer, hold: HoldValues = () => {}): ExecutionResult {
  return resultOf(membersOf(answer, hold));
}

/**
 * Called before the values of `data` are made, but not for later payloads, which have a page each. Its errors are thrown
 * where the values are read.
 *
 * @param bytes the memory that the values will need in addition, estimated
 */
type HoldValues = (bytes: number) => void;

/** The values of a payload in the format of its caller. */
export interface PayloadResult extends ExecutionResult {
  hasNext?: boolean;
  pending?: readonly Readonly<Record<string, unknown>>[];
  incremental?: readonly Readonly<Record<string, unknown>>[];
  completed?: readonly Readonly<Record<string, unknown>>[];
}

/**
 * Creates the result of a payload of an answer in parts. A first payload without a next one is a whole result.
 *
 * @returns undefined for a payload that means nothing in this format
 */
export function createPayload(
  payload: Payload,
  format: IncrementalFormat,
  hold: HoldValues = () => {},
): PayloadResult | undefined {
  const { first, hasNext } = payload;
  if (first && !hasNext) return createResult(first, hold);
  const lists = payloadLists(payload, format);
  if (!first && hasNext && lists.length === 0) return undefined;
  const members = [
    ...(first ? membersOf(first, hold) : []),
    ...lists.map(listMember),
    more(hasNext),
  ];
  return resultOf(members);
}

/** Writes any result as JSON: one of the above, a copy, or one that a plugin has made. */
export function writeResult(result: object, mask: Mask): Pieces {
  const text: Pieces = [];
  for (const name of Object.keys(result)) {
    const member = memberOf(result, name);
    const written = member?.isMade
      ? writeMember(name, member.get(), mask)
      : (member?.write(mask) ?? writeMember(name, valueOf(result, name), mask));
    if (!written) continue;
    text.push(`${text.length > 0 ? ',' : '{'}${JSON.stringify(name)}:`);
    for (const piece of written) text.push(piece);
  }
  text.push(text.length > 0 ? '}' : '{}');
  return text;
}

/** The HTTP status and headers that plugins request. */
interface RequestedHttp {
  status: number | undefined;
  readonly headers: Record<string, string>;
}

/**
 * Returns the `extensions.http` of a result and of its errors, with the meaning that Yoga gives it. The
 * `extensions.http` of the service's answer and of the gateway's errors do not count.
 *
 * @param isJson whether the response is `application/json`: there, errors with `spec` do not change the status
 */
export function httpOf(result: object, isJson: boolean): RequestedHttp {
  const requested: RequestedHttp = { status: undefined, headers: {} };
  const extensions = seen(result, 'extensions');
  const errors = seen(result, 'errors');
  if (isObject(extensions)) addHttp(extensions, requested, false);
  if (!Array.isArray(errors)) return requested;
  for (const error of errors as readonly unknown[]) {
    if (!isObject(error) || origins.has(error) || !isObject(error['extensions'])) continue;
    addHttp(error['extensions'], requested, isJson);
  }
  return requested;
}

function addHttp(extensions: Json, requested: RequestedHttp, isJson: boolean): void {
  const { http } = extensions;
  if (!isObject(http)) return;
  Object.assign(requested.headers, http['headers']);
  const { status, spec } = http;
  if (typeof status !== 'number' || (isJson && spec)) return;
  requested.status = Math.max(status, requested.status ?? 0);
}

type Pieces = (string | Buffer)[];
type Json = Record<string, unknown>;

/** A property whose value is made when it is first read. */
class Member {
  readonly #make: () => unknown;
  /** Writes the source of the value. */
  readonly write: (mask: Mask) => readonly (string | Buffer)[];
  #value: unknown;
  isMade = false;

  constructor(make: () => unknown, write: Member['write']) {
    this.#make = make;
    this.write = write;
    this.get[MEMBER] = this;
  }

  readonly get: Getter = () => {
    if (!this.isMade) {
      this.#value = this.#make();
      this.isMade = true;
    }
    return this.#value;
  };
}

interface Getter {
  (): unknown;
  /** The member to which the accessor belongs. */
  [MEMBER]?: Member;
}

const MEMBER = Symbol('member');

type NamedMember = readonly [name: string, member: Member];

function membersOf({ data, errors, extensions }: WholeAnswer, hold: HoldValues): NamedMember[] {
  const members: NamedMember[] = [];
  if (data !== undefined) {
    const pieces = data === null ? ['null'] : ['{', ...data, '}'];
    const make = () => {
      hold(valueBytes(pieces));
      return parse(pieces);
    };
    members.push(['data', new Member(make, () => pieces)]);
  }
  if (errors.length > 0) {
    const write = (mask: Mask) => [writeErrors(errors, mask)];
    members.push(['errors', new Member(() => errors.map(errorValue), write)]);
  }
  if (extensions !== undefined) {
    const pieces = [extensions];
    members.push([
      'extensions',
      new Member(
        () => parse(pieces, withoutHttp),
        () => pieces,
      ),
    ]);
  }
  return members;
}

function listMember(list: PayloadList): NamedMember {
  const { name, entries } = list;
  return [
    name,
    new Member(
      () => entries.map(entryValue),
      (mask) => writeEntries(list, mask),
    ),
  ];
}

/** For records with some short members; records with many levels need up to twice as much. */
const BYTES_OF_VALUES = 4;

function valueBytes(pieces: readonly (string | Buffer)[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0) * BYTES_OF_VALUES;
}

function more(hasNext: boolean): NamedMember {
  return [
    'hasNext',
    new Member(
      () => hasNext,
      () => [String(hasNext)],
    ),
  ];
}

function resultOf(members: readonly NamedMember[]): ExecutionResult {
  const result = {};
  for (const [name, { get }] of members) {
    Object.defineProperty(result, name, {
      get,
      // Like a plain property: an object that inherits from the result gets its own value.
      set(this: object, value: unknown) {
        const plain = { value, writable: true, enumerable: true, configurable: true };
        Object.defineProperty(this, name, plain);
      },
      enumerable: true,
      configurable: true,
    });
  }
  return result;
}

/** Returns a member that was not assigned. */
function memberOf(result: object, name: string): Member | undefined {
  // Not a WeakMap of results: one that each request grows would be much of the work of garbage collection.
  return (Object.getOwnPropertyDescriptor(result, name)?.get as Getter | undefined)?.[MEMBER];
}

/** Returns a value that may have been changed; undefined if it was never read. */
function seen(result: object, name: string): unknown {
  const member = memberOf(result, name);
  return !member || member.isMade ? valueOf(result, name) : undefined;
}

function valueOf(object: object, name: string): unknown {
  return (object as Json)[name];
}

/** The bytes or objects from which a value was made. */
interface Origin {
  /** Whether the value was not changed. @param written what `JSON.stringify` makes of it now */
  readonly isWrittenAs: (written: string) => boolean;
  readonly write: Member['write'];
}

/** By the values that were made: a plugin may have put them into another object. */
const origins = new WeakMap<object, Origin>();

function parse(pieces: readonly (string | Buffer)[], change = (value: unknown) => value): unknown {
  const text = () => pieces.map((piece) => piece.toString()).join('');
  const make = () => change(JSON.parse(text()));
  const value = make();
  if (isObject(value)) {
    origins.set(value, {
      // Most services write like `JSON.stringify`. The comparison with `make` covers spaces and numbers written
      // differently.
      isWrittenAs: (written) => written === text() || written === JSON.stringify(make()),
      write: () => pieces,
    });
  }
  return value;
}

/** The service does not decide about the gateway's response. Its `http` is sent as long as nothing is changed. */
function withoutHttp(extensions: unknown): unknown {
  if (isObject(extensions)) delete extensions['http'];
  return extensions;
}

function entryValue({ value, about, errors, extensions }: PayloadEntry): Json {
  return {
    ...(value && { [value.name]: parse(value.json) }),
    ...(JSON.parse(`{${about}}`) as Json),
    ...(errors.length > 0 && { errors: errors.map(errorValue) }),
    ...(extensions !== undefined && { extensions: parse([extensions], withoutHttp) }),
  };
}

function errorValue(error: AnswerError): GraphQLError {
  const make = () => (isOfService(error) ? serviceError(error) : thrownError(error));
  const value = make();
  origins.set(value, {
    isWrittenAs: (written) => written === JSON.stringify(make()),
    write: (mask) => [writeError(error, mask)],
  });
  return value;
}

function serviceError({ message, path, members }: UpstreamError): GraphQLError {
  const { extensions, locations } = JSON.parse(`{${members}}`) as Json;
  const error = new GraphQLError(message, {
    path,
    extensions: isObject(extensions) ? (withoutHttp(extensions) as Json) : null,
  });
  return Array.isArray(locations) ? Object.assign(error, { locations }) : error;
}

function thrownError({ thrown, path }: Exclude<AnswerError, UpstreamError>): GraphQLError {
  const originalError = thrown instanceof Error ? thrown : new Error(String(thrown));
  const { message } = originalError;
  if (!(originalError instanceof GraphQLError)) {
    return new GraphQLError(message, { path, originalError });
  }
  // A new error for each result: several callers may wait for the same one, and plugins add extensions.
  const { nodes, extensions } = originalError;
  return new GraphQLError(message, {
    nodes: nodes ?? null,
    path: path ?? originalError.path ?? null,
    originalError,
    extensions: { ...extensions },
  });
}

function writeMember(
  name: string,
  value: unknown,
  mask: Mask,
): ReturnType<Member['write']> | undefined {
  if (Array.isArray(value) && LISTS.has(name)) return writeList(value, mask);
  if (Array.isArray(value) && name === 'errors') {
    if (value.length === 0) return undefined;
    return [`[${value.map((error) => writeAnyError(error, mask)).join(',')}]`];
  }
  if (name === 'extensions' && isObject(value) && 'http' in value) {
    const { http: _, ...extensions } = value;
    return Object.keys(extensions).length > 0 ? writeValue(extensions, mask) : undefined;
  }
  return writeValue(value, mask);
}

const LISTS: ReadonlySet<string> = new Set(['pending', 'incremental', 'completed']);

function writeList(list: readonly unknown[], mask: Mask): Pieces {
  const text: Pieces = ['['];
  for (const [i, entry] of list.entries()) {
    if (i > 0) text.push(',');
    for (const piece of isObject(entry) ? writeResult(entry, mask) : ['null']) text.push(piece);
  }
  text.push(']');
  return text;
}

function writeAnyError(error: unknown, mask: Mask): string {
  const origin = isObject(error) ? origins.get(error) : undefined;
  if (origin?.isWrittenAs(JSON.stringify(error))) return origin.write(mask).join('');
  return writeError({ thrown: error, path: undefined }, mask);
}

function writeValue(value: unknown, mask: Mask): ReturnType<Member['write']> | undefined {
  // Undefined for values that JSON cannot represent.
  const written = JSON.stringify(value) as string | undefined;
  if (written === undefined) return undefined;
  const origin = isObject(value) ? origins.get(value) : undefined;
  return origin?.isWrittenAs(written) ? origin.write(mask) : [written];
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null;
}
