import type { TooBig } from '../errors.ts';
import { matches, type Json } from '../json.ts';
import { STEP, type Pausable } from '../pausable.ts';
import {
  INLINED_PAGE,
  MAX_ERRORS,
  gatewayError,
  startsWith,
  type Path,
  type UpstreamError,
} from './answer-errors.ts';
import { cut, isKeptInPlace, PAUSED, scanner, Tape, type Scan } from './scan.ts';
import { objectShape, type FieldShape, type Shape, type TypenameShape } from './shape.ts';

/** Turns the bytes of an answer into a value. */
interface AnswerScan<T> {
  readonly scan: Scan;
  /** Makes the value of a scanned answer. Returns undefined if the answer has to be read in general after all. */
  readonly take: (bytes: Buffer, tape: Tape) => Pausable<T | undefined>;
}

/**
 * Creates a function that takes an answer without errors as bytes: `data`, which `scan` scans, with `extensions` and an
 * empty `errors` before or behind it. The tape records where both are. The function returns undefined for an answer
 * that has to be read in general.
 */
export function envelopeScanner<T>({
  scan: scanData,
  take,
}: AnswerScan<T>): (bytes: Buffer) => Pausable<T | undefined> {
  // For answers that are scanned without a pause, so that two of them never use it at the same time.
  const shared = new Tape();
  return function* scanned(bytes) {
    const tape = bytes.length > STEP ? new Tape() : shared;
    tape.reset();
    let end = scan(bytes, 0, tape);
    while (end === PAUSED) {
      yield;
      tape.pauseAt += STEP;
      end = scan(bytes, 0, tape);
    }
    return end === bytes.length ? yield* take(bytes, tape) : undefined;
  };

  function scan(bytes: Uint8Array, at: number, tape: Tape): number {
    if (bytes[at] !== 123) return -1;
    let end = at;
    // Only the data can pause.
    let isPaused = tape.places.length > 0;
    do {
      const start = end + 1;
      if (isPaused || (tape.dataAt < 0 && matches(bytes, start, DATA_KEY))) {
        if (!isPaused) tape.dataAt = start + DATA_KEY.length;
        isPaused = false;
        end = scanData(bytes, tape.dataAt, tape);
      } else if (tape.extensionsAt < 0 && matches(bytes, start, EXTENSIONS_KEY)) {
        tape.extensionsAt = start + EXTENSIONS_KEY.length;
        end = scanAnything(bytes, tape.extensionsAt, tape);
        tape.extensionsEnd = end;
      } else {
        const noErrors = NO_ERRORS.find((written) => matches(bytes, start, written));
        if (!noErrors) return -1;
        end = start + noErrors.length;
      }
      if (end < 0) return end;
    } while (bytes[end] === 44);
    return bytes[end] === 125 && tape.dataAt >= 0 ? end + 1 : -1;
  }
}

/** A field of an answer's data. */
export type Slot = FieldShape & { readonly shape: Shape | TypenameShape };

/** The data of an answer without errors, as bytes. */
export interface ScannedSlots {
  /** All slots, with their keys. */
  readonly whole: Buffer;
  /** Start and end of the value of each slot. */
  readonly at: readonly number[];
  /** As they were written. */
  readonly extensions: string | undefined;
}

/** Makes a function that takes an answer with these fields as bytes: see `envelopeScanner`. */
export function slotScanner(
  slots: readonly Slot[],
): (bytes: Buffer) => Pausable<ScannedSlots | undefined> {
  return envelopeScanner({ scan: scanner(objectShape(OF, slots), { noted: slots }), take });

  function* take(bytes: Buffer, tape: Tape): Pausable<ScannedSlots> {
    const { dataAt, extensionsAt, extensionsEnd } = tape;
    const hasExtensions = bytes[extensionsAt] === 123;
    const places = tape.noted.slice(0, 2 * slots.length);
    const inside = [dataAt + 1, places.at(-1)!] as const;
    const { bytes: whole, at } = isKeptInPlace(inside, tape)
      ? { bytes: bytes.subarray(...inside), at: places.map((place) => place - inside[0]) }
      : yield* cut(bytes, inside, tape, places);
    return {
      whole,
      at,
      extensions: hasExtensions ? bytes.toString('utf8', extensionsAt, extensionsEnd) : undefined,
    };
  }
}

/** The shape of an object that is part of every answer. */
export const OF = { nullable: false, type: '' };

/** A field of such an object. */
export function member(key: string, shape: Shape): Slot {
  return { key, shape, isSilent: false };
}

const scanAnything = scanner({ kind: 'any', nullable: true, type: '' });
const DATA_KEY = Buffer.from('"data":');
const EXTENSIONS_KEY = Buffer.from('"extensions":');
/** How some services report that there are no errors. The specification omits the key (section 7.1). */
const NO_ERRORS = [Buffer.from('"errors":null'), Buffer.from('"errors":[]')];

/** The facts that decide whether a request is sent again in another form. */
export interface RequestOutcome {
  /** The keys of the inlined pages whose failure also nulled their parent. */
  readonly nullingPages: ReadonlySet<string>;
  /** Why the request was refused as a whole, if that was for its size. */
  readonly tooBig?: TooBig | undefined;
}

/** An answer that is read in general, taken apart. */
export interface Envelope extends RequestOutcome {
  readonly data: Json | undefined;
  readonly errors: readonly UpstreamError[];
  /** As they were written. */
  readonly extensions: string | undefined;
  /** Bytes, roughly. */
  readonly size: number;
}

export function* readEnvelope(answer: Json, status: number): Pausable<Envelope> {
  const members = answer.members(MEMBERS);
  const data = members.get('data');
  const errors = yield* readErrors(members.get('errors'));
  const extensions = members.get('extensions');
  return {
    data,
    errors,
    extensions: extensions?.kind === 'object' ? extensions.raw : undefined,
    nullingPages: yield* nullingPagesOf(data, errors),
    tooBig: tooBigIn({ data, errors }, status),
    size: answer.length,
  };
}

const MEMBERS: ReadonlySet<string> = new Set(['data', 'errors', 'extensions']);

/** A value within an answer of the service, with its errors. Their paths begin at the value. */
export interface ServiceValue {
  readonly value: Json | undefined;
  readonly errors: readonly UpstreamError[];
}

/** Finds these members of the data, each with its own errors. */
export function slotsIn(
  { data, errors }: Pick<Envelope, 'data' | 'errors'>,
  keys: readonly string[],
): {
  readonly slots: readonly ServiceValue[];
  /** The errors that do not belong to any of them. */
  readonly unplaced: readonly UpstreamError[];
} {
  const values = data?.members(new Set(keys));
  const byKey = new Map<unknown, UpstreamError[]>(keys.map((key) => [key, []]));
  const unplaced: UpstreamError[] = [];
  for (const error of errors) {
    const ofSlot = byKey.get(error.path?.[0]);
    if (ofSlot) ofSlot.push({ ...error, path: error.path!.slice(1) });
    else unplaced.push(error);
  }
  const slots = keys.map((key) => ({ value: values?.get(key), errors: byKey.get(key)! }));
  return { slots, unplaced };
}

/** Returns the value at a path below. Errors with another path, or without a path, get an empty path. */
export function descend({ value, errors }: ServiceValue, path: readonly string[]): ServiceValue {
  let inner = value;
  for (const step of path) inner = inner?.get(step);
  return {
    value: inner,
    errors: errors.map((error) => ({
      ...error,
      path: error.path && startsWith(error.path, path) ? error.path.slice(path.length) : [],
    })),
  };
}

function* readErrors(errors: Json | undefined): Pausable<readonly UpstreamError[]> {
  const read: UpstreamError[] = [];
  let count = 0;
  let progress = 0;
  for (const error of errors?.elements() ?? []) {
    if (count < MAX_ERRORS) read.push(readError(error, count));
    count += 1;
    progress += error.length;
    if (progress <= STEP) continue;
    progress = 0;
    yield;
  }
  return count > MAX_ERRORS ? [...read, tooMany(count - MAX_ERRORS)] : read;
}

function readError(error: Json, order: number): UpstreamError {
  const known = error.members();
  const extensions = known.get('extensions');
  const members: string[] = [];
  for (const [key, value] of known) {
    if (NOT_PASSED_ON.has(key) || (key === 'extensions' && value.kind !== 'object')) continue;
    members.push(`${JSON.stringify(key)}:${value.raw}`);
  }
  const code = extensions?.get('code');
  return {
    message: known.get('message')?.string ?? 'The recruiting service reported an error.',
    path: readPath(known.get('path')),
    members: members.join(','),
    code: code?.string ?? code?.raw,
    order,
  };
}

/** Locations refer to the document that the gateway sent, not to the caller's. */
const NOT_PASSED_ON = new Set(['message', 'path', 'locations']);

function readPath(path: Json | undefined): Path | undefined {
  if (path?.kind !== 'list') return undefined;
  const steps = Array.from(path.elements(), (step) =>
    step.kind === 'number' ? indexIn(step.raw) : step.string,
  );
  return steps.some((step) => step === undefined) ? undefined : (steps as Path);
}

/** Some services write all numbers with a fraction or an exponent: 3.0, 3e0. */
function indexIn(number: string): number | undefined {
  const index = Number(number);
  return Number.isSafeInteger(index) && index >= 0 ? Math.abs(index) : undefined;
}

function tooMany(count: number): UpstreamError {
  return gatewayError(
    'UPSTREAM_BAD_RESPONSE',
    `The recruiting service reported ${count} more errors, which are left out. Request less at a time.`,
  );
}

/** Returns the keys of the inlined pages whose failure also nulled their parent. Exported for a test of its pauses. */
export function* nullingPagesOf(
  data: Json | undefined,
  errors: readonly UpstreamError[],
): Pausable<ReadonlySet<string>> {
  const failed = errors.flatMap(({ path = [] }) => {
    const last = path.findLastIndex((step) => INLINED_PAGE.test(String(step)));
    return last < 0 ? [] : [{ parent: path.slice(0, last), key: String(path[last]) }];
  });
  return failed.length > 0 ? new Set(yield* withoutParent(data, failed, 0)) : NO_PAGES;
}

export const NO_PAGES: ReadonlySet<string> = new Set();

interface FailedPage {
  readonly parent: Path;
  readonly key: string;
}

/** The keys of the pages whose parent is null. Reads each list on the way once, however many pages failed in it. */
function* withoutParent(
  value: Json | undefined,
  failed: readonly FailedPage[],
  depth: number,
): Pausable<string[]> {
  if (!value || value.isNull) return failed.map(({ key }) => key);
  const byStep = Map.groupBy(failed, ({ parent }) => parent[depth]);
  byStep.delete(undefined);
  const values = yield* valuesAt(value, [...byStep.keys()] as (string | number)[]);
  const keys: string[] = [];
  for (const [step, pages] of byStep) {
    keys.push(...(yield* withoutParent(values.get(step!), pages, depth + 1)));
  }
  return keys;
}

/** Finds members by their keys, or elements by their indexes. */
function* valuesAt(
  value: Json,
  steps: readonly (string | number)[],
): Pausable<ReadonlyMap<string | number, Json>> {
  if (value.kind !== 'list') return value.members(new Set(steps.map(String)));
  const missing = new Set(steps);
  const values = new Map<string | number, Json>();
  let index = 0;
  let progress = 0;
  for (const element of value.elements()) {
    if (missing.delete(index)) values.set(index, element);
    if (missing.size === 0) break;
    index += 1;
    progress += element.length;
    if (progress <= STEP) continue;
    progress = 0;
    yield;
  }
  return values;
}

/**
 * Finds out whether a request without data was too big. The GraphQL specification does not define how services say so.
 * This recognizes the codes and messages of graphql-java, graphql-ruby, graphql-php, Hot Chocolate, Absinthe, gqlgen,
 * async-graphql, graphql-query-complexity, graphql-cost-analysis, GraphQL Armor, Apollo Router, GitHub and Shopify. A
 * message about the depth of the operation, or about the rate of requests, is not about the number of records.
 */
function tooBigIn(
  { data, errors }: { readonly data: Json | undefined; readonly errors: readonly UpstreamError[] },
  status: number,
): TooBig | undefined {
  if ((data && !data.isNull) || errors.length === 0) return undefined;
  const refusal = errors.find(isRefusalOfSize) ?? (status === 413 ? errors[0] : undefined);
  if (refusal) return { isReported: true, share: shareIn(refusal), message: refusal.message };
  return status === 502 || status === 504
    ? { isReported: false, message: errors[0]!.message }
    : undefined;
}

function isRefusalOfSize({ message, code, members }: UpstreamError): boolean {
  if (CODES.test(String(code)) || TYPES.test(members)) return true;
  const words = message.replaceAll(/https?:\S+/g, '');
  return SIZES.test(words) && EXCESS.test(words) && !OTHER_LIMITS.test(words);
}

/** Hot Chocolate has `HC0047` and `HC0081`. */
const CODES =
  /^(?:HC0047|HC0081|.*(?:TOO_(?:COMPLEX|EXPENSIVE|LARGE|BIG)|(?:COMPLEXITY|COST|NODE)_(?:LIMIT_)?EXCEEDED|COST_LIMIT).*)$/;
/** GitHub sends this beside the message. */
const TYPES = /"type":"MAX_NODE_LIMIT_EXCEEDED"/;
const SIZES = /complex|\bcosts?\b|expensive|\bnodes\b|too (?:large|big|many (?:records|items))/i;
const EXCESS = /exceed|\btoo\b|\bover\b|more than|limit|maximum|\bmax\b/i;
const OTHER_LIMITS =
  /\bdepth\b|\brates?\b|throttl|too many requests|quota|per (?:second|minute|hour|day)\b/i;

/** Reads the cost and the limit, in either order, from a message or its extensions. */
function shareIn({ message, members }: UpstreamError): number | undefined {
  return shareOf(numbersIn(message)) ?? shareOf(numbersIn(members));
}

function numbersIn(text: string): readonly number[] {
  return Array.from(text.matchAll(NUMBER), ([number]) => Number(number.replaceAll(/[,_]/g, '')));
}

/** Does not match digits in words such as HC0047. */
const NUMBER = /(?<![\w.])\d+(?:[,_]\d{3})*(?:\.\d+)?(?!\w)/g;

function shareOf([first = 0, second = 0]: readonly number[]): number | undefined {
  const share = Math.min(first, second) / Math.max(first, second);
  return share > 0 && share < 1 ? share : undefined;
}
