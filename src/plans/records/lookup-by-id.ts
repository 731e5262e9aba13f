import { OperationTypeNode, type GraphQLObjectType, type SelectionNode } from 'graphql';
import type { UpstreamError } from '../../answers/answer-errors.ts';
import {
  member,
  NO_PAGES,
  readEnvelope,
  slotScanner,
  slotsIn,
  type Envelope,
  type ServiceValue,
  type ScannedSlots,
} from '../../answers/envelope.ts';
import { readValue } from '../../answers/read.ts';
import { keyBytesOf, shapeOf, type Shape } from '../../answers/shape.ts';
import type { TooBig } from '../../errors.ts';
import type { Json } from '../../json.ts';
import { PAGES_PER_OPERATION } from '../../paging/page.ts';
import { atOnce, type Pausable } from '../../pausable.ts';
import { Slots } from '../../queue.ts';
import type { ByIdField } from '../../schema/derived.ts';
import type { Call, UpstreamRequest } from '../call.ts';
import type { FieldParts } from '../lists/list-field.ts';
import { PageFailure } from '../pages/page.ts';
import {
  RecordTooBig,
  repeated,
  type Attempt,
  type SizedList,
} from '../requests/accepted-sizes.ts';
import {
  argumentNode,
  fieldNode,
  orTypename,
  requestSparingParents,
  variableDefinitionNode,
  writeRequest,
  type PagesToInline,
  type RequestText,
} from '../requests/request-text.ts';
import { resultReading, type ResultReading } from '../requests/results.ts';
import type { LookupResult, RecordId, RecordLookup } from './record-references.ts';

/** Ids per request. */
const BATCH = 50;
/** A failed batch of this number of ids or fewer is sent again as single requests. */
const FEW = 6;

const WHOLE: Attempt = { records: undefined, pages: 'all', isPart: false, isRepeated: false };

/** The answer for one id: bytes where the scanner took the record, null without one, otherwise what is read in general. */
type Answered = Buffer | ServiceValue | null;

/** The answer to a batch. */
interface BatchAnswer {
  /** One for each id; undefined if the request failed as a whole, so that nothing is known of a single id. */
  readonly values: readonly Answered[] | undefined;
  /** Whether the upstream refused to execute the request: a variable, or the request itself, is invalid. */
  readonly isRefused: boolean;
  readonly nullingPages: ReadonlySet<string>;
  /** Why the request was refused as a whole, if that was for its size. */
  readonly tooBig?: TooBig | undefined;
  /** Bytes. */
  readonly size: number;
}

/** Finds records with the upstream's by-id field: many ids in one request, under aliases. */
export function lookupById(
  { writer, scope, operation, sizes, telemetry }: FieldParts,
  by: ByIdField,
  selections: readonly SelectionNode[],
): (call: Call) => RecordLookup {
  const root = scope.schema.getQueryType() as GraphQLObjectType;
  const result = resultReading(by.result, scope, telemetry);
  const type = by.result
    ? (scope.schema.getType(by.result.wanted.name) as GraphQLObjectType)
    : root.getFields()[by.field]!.type;
  const shape: Shape = { ...result.shape(shapeOf(scope, type, selections)), nullable: true };
  const { ofAliases: aliasBytes } = keyBytesOf([shape]);
  /** By the number of ids. */
  const scans = new Map<number, ReturnType<typeof slotScanner>>();
  const scanFor = (count: number) => {
    const known = scans.get(count) ?? slotScanner(keysOf(count).map((key) => member(key, shape)));
    scans.set(count, known);
    return known;
  };
  const texts = new Map<number, RequestText>();
  const textFor = (count: number, pages: PagesToInline): RequestText => {
    if (pages !== 'all') return written(count, pages);
    const known = texts.get(count) ?? written(count, pages);
    texts.set(count, known);
    return known;
  };

  let made: SizedList | undefined;
  const sized = () => (made ??= sizedBatch());

  return (call) => ({
    name: `${by.field} ${textFor(1, 'all').name(call.variables)}`,
    aliasBytes,
    find: async (ids) => {
      // The text of a request is long, so none is written long before it is sent.
      const slots = new Slots(() => PAGES_PER_OPERATION);
      const values = await Promise.all(
        batches(ids, sizes.of(sized())).map((batch) =>
          slots.run(() => findBatch(batch, call)).catch((error: Error) => batch.map(() => error)),
        ),
      );
      return values.flat().map((value) => resultOf(shape, value, result));
    },
  });

  async function findBatch(
    ids: readonly RecordId[],
    call: Call,
  ): Promise<readonly (Answered | Error)[]> {
    let answered: readonly (Answered | Error)[];
    let count = 1;
    try {
      const sent = (attempt: Attempt) => send(ids.slice(0, attempt.records), call, attempt);
      const { answer, records = ids.length } = await sizes.request(sized(), ids.length, sent);
      count = records;
      answered = answer.values ?? (await separately(ids.slice(0, count), answer, call));
    } catch (error) {
      if (!(error instanceof RecordTooBig)) throw error;
      answered = [error];
    }
    if (count >= ids.length) return answered;
    const rest = ids.slice(count);
    const others = findBatch(rest, call).catch((error: Error) => rest.map(() => error));
    return [...answered, ...(await others)];
  }

  async function separately(
    ids: readonly RecordId[],
    { isRefused }: BatchAnswer,
    call: Call,
  ): Promise<readonly (Answered | Error)[]> {
    if (!isRefused) return inParts(ids, call);
    const firstTwo = await alone(ids.slice(0, 2), call);
    // If two ids fail for the same reason, the request itself is invalid, whatever the ids are.
    return areAlike(firstTwo)
      ? ids.map((_, at) => firstTwo[at] ?? firstTwo[0]!)
      : [...firstTwo, ...(await inParts(ids.slice(2), call))];
  }

  /** Separates the ids that made a batch fail from the others. Mostly it is one id, which halving finds soonest. */
  async function inParts(
    ids: readonly RecordId[],
    call: Call,
  ): Promise<readonly (Answered | Error)[]> {
    if (ids.length <= FEW) return alone(ids, call);
    const half = Math.ceil(ids.length / 2);
    const parts = [ids.slice(0, half), ids.slice(half)].map((part) =>
      send(part, call).then(
        ({ values }) => values ?? inParts(part, call),
        (error: Error) => part.map(() => error),
      ),
    );
    return (await Promise.all(parts)).flat();
  }

  async function alone(
    ids: readonly RecordId[],
    call: Call,
  ): Promise<readonly (Answered | Error)[]> {
    const each = ids.map((id) =>
      send([id], call).then(
        ({ values }) => values!,
        (error: Error) => [error],
      ),
    );
    return (await Promise.all(each)).flat();
  }

  async function send(
    ids: readonly RecordId[],
    call: Call,
    { pages: inlined, isPart, isRepeated, trialMs }: Attempt = WHOLE,
  ): Promise<BatchAnswer> {
    const idVariables = Object.fromEntries(ids.map((id, at) => [variableFor(at), id]));
    const write = (pages: PagesToInline): UpstreamRequest<BatchAnswer> => {
      const text = textFor(ids.length, pages);
      const cost = text.pages(call.variables);
      const request: UpstreamRequest<BatchAnswer> = {
        kind: 'query',
        field: text.field,
        body: text.body(call.variables, idVariables),
        key: text.key(call.variables),
        pages: isPart && cost === 1 ? ids.length / BATCH : cost,
        scan: (bytes) => scanned(scanFor(ids.length)(bytes)),
        read: (json, status) => readBatch(json, ids.length, status),
      };
      return isRepeated ? repeated(request, trialMs) : request;
    };
    const answer = await requestSparingParents<BatchAnswer>(call, write, inlined);
    await call.hold(answer, answer.size);
    return answer;
  }

  function sizedBatch(): SizedList {
    const { selection, hasInlinedPages } = textFor(1, 'all');
    return { list: `${root.name}.${by.field}`, selection, begin: undefined, hasInlinedPages };
  }

  function written(count: number, pages: PagesToInline): RequestText {
    const fields = keysOf(count).map((alias, at) =>
      fieldNode(by.field, {
        alias,
        args: [argumentNode(by.argument.name, variableFor(at))],
        selections: result.select(orTypename(selections)),
      }),
    );
    const ids = keysOf(count).map((_, at) =>
      variableDefinitionNode(variableFor(at), by.argument.type),
    );
    const query = {
      ...operation,
      operation: OperationTypeNode.QUERY,
      variableDefinitions: [...operation.variableDefinitions, ...ids],
    };
    return writeRequest(writer, query, fields, pages, scope);
  }
}

/** Not `_rs_…`, which are the variables of page requests. */
function variableFor(at: number): string {
  return `_rsKey${at}`;
}

/** The aliases of `count` records. */
function keysOf(count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `_rsRecord${at}`);
}

function* scanned(scanning: Pausable<ScannedSlots | undefined>): Pausable<BatchAnswer | undefined> {
  const slots = yield* scanning;
  if (!slots) return undefined;
  const { whole, at } = slots;
  const values = Array.from({ length: at.length / 2 }, (_, i) => {
    const start = at[2 * i]!;
    return whole[start] === LETTER_N ? null : whole.subarray(start, at[2 * i + 1]);
  });
  return { values, isRefused: false, nullingPages: NO_PAGES, size: whole.length };
}

/** Of `null`. */
const LETTER_N = 0x6e;

function* readBatch(answer: Json, count: number, status: number): Pausable<BatchAnswer> {
  const envelope = yield* readEnvelope(answer, status);
  const { data, errors } = envelope;
  const isWhole = data !== undefined && (!data.isNull || errors.length === 0);
  return {
    ...envelope,
    values: isWhole || count === 1 ? valuesIn(envelope, keysOf(count)) : undefined,
    isRefused: data === undefined,
  };
}

/** An error that belongs to no record may explain any null, so it goes to each that has none; or to the first record. */
function valuesIn(envelope: Envelope, keys: readonly string[]): readonly ServiceValue[] {
  const { slots, unplaced } = slotsIn(envelope, keys);
  if (unplaced.length === 0) return slots;
  const placed = unplaced.map((error) => ({ ...error, path: [] }));
  const explained = slots.some(isUnexplained) ? slots.filter(isUnexplained) : slots.slice(0, 1);
  return slots.map((slot) =>
    explained.includes(slot) ? { ...slot, errors: [...slot.errors, ...placed] } : slot,
  );
}

function isUnexplained({ value, errors }: ServiceValue): boolean {
  return isNone(value) && errors.length === 0;
}

function isNone(value: Json | undefined): boolean {
  return value === undefined || value.isNull;
}

function areAlike(two: readonly (Answered | Error)[]): boolean {
  const [reason, otherReason] = two
    .slice(0, 2)
    .map((each) =>
      !each || each instanceof Error || Buffer.isBuffer(each) || !isNone(each.value)
        ? undefined
        : each.errors[0]?.message,
    );
  return reason !== undefined && reason === otherReason;
}

function batches(ids: readonly RecordId[], most = BATCH): (readonly RecordId[])[] {
  const size = Math.min(most, BATCH);
  return Array.from({ length: Math.ceil(ids.length / size) }, (_, at) =>
    ids.slice(at * size, (at + 1) * size),
  );
}

/** Undefined if there is no record. */
function resultOf(
  shape: Shape,
  answered: Answered | Error,
  result: ResultReading,
): LookupResult | undefined {
  if (answered instanceof Error) return { failure: answered };
  if (Buffer.isBuffer(answered)) return { record: answered, unplacedErrors: NO_ERRORS };
  if (!answered) return undefined;
  const read = result.read(answered);
  if (read.kind === 'other') return undefined;
  if (read.kind === 'failure') {
    return read.isMissing ? undefined : { failure: new PageFailure(read.errors) };
  }
  const { value, errors } = read.answered;
  if (value?.isNull && errors.length === 0) return undefined;
  // The record as a whole failed: its errors are reported at the path of the field.
  const isFailed = isNone(value) && errors.length > 0;
  if (isFailed && errors.every(({ path }) => path?.length === 0)) {
    return { failure: new PageFailure(errors) };
  }
  return { record: atOnce(readValue(shape, value, errors)), unplacedErrors: NO_ERRORS };
}

const NO_ERRORS: readonly UpstreamError[] = [];
