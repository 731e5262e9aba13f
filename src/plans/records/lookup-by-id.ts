import { OperationTypeNode, type GraphQLObjectType } from 'graphql';
import type { UpstreamError } from '../../answers/answer-errors.ts';
import { readValue } from '../../answers/read.ts';
import { readAnswer, type Found } from '../../answers/service-answer.ts';
import { keyBytesOf, shapeOf, type Shape } from '../../answers/shape.ts';
import { tooBigIn } from '../../answers/too-big.ts';
import type { Json } from '../../json.ts';
import { atOnce, type Pausable } from '../../pausable.ts';
import { PAGES_PER_OPERATION } from '../../paging/page.ts';
import { Slots } from '../../queue.ts';
import type { ByIdField } from '../../schema/derived.ts';
import type { TooBig } from '../../errors.ts';
import type { Call, UpstreamRequest } from '../call.ts';
import type { FieldParts } from '../lists/list-field.ts';
import { PageFailure } from '../pages/fetch-page.ts';
import type { LookupResult, RecordId, RecordLookup } from '../record-loader.ts';
import {
  argumentNode,
  fieldNode,
  orTypename,
  variableDefinitionNode,
} from '../requests/added-fields.ts';
import {
  RecordTooBig,
  repeated,
  type Attempt,
  type SizedList,
} from '../requests/accepted-sizes.ts';
import type { PlacedSelections } from '../requests/field-places.ts';
import { NO_PAGES, nullingPagesOf } from '../requests/nulling-pages.ts';
import {
  requestSparingParents,
  writeRequest,
  type RequestText,
  type PagesToInline,
} from '../requests/request-text.ts';
import { resultReading, type ResultReading } from '../requests/results.ts';
import { BATCH, batchScanner, keyFor, type ScannedBatch } from './scan-batch.ts';

/** A failed batch of so many ids or fewer is sent again as single requests. */
const FEW = 6;

const WHOLE: Attempt = { records: undefined, pages: 'all', isPart: false, isRepeated: false };

/** The answer for one id: bytes where the scanner took the record, null without one, otherwise what is read in general. */
type Answered = Buffer | Found | null;

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
  { selections, places }: PlacedSelections,
): (call: Call) => RecordLookup {
  const root = scope.schema.getQueryType() as GraphQLObjectType;
  const result = resultReading(by.result, scope, telemetry);
  const type = by.result
    ? (scope.schema.getType(by.result.wanted.name) as GraphQLObjectType)
    : root.getFields()[by.field]!.type;
  const shape: Shape = { ...result.shape(shapeOf(scope, type, selections)), nullable: true };
  const { ofAliases: aliasBytes } = keyBytesOf([shape]);
  const scan = batchScanner(shape);
  /** By the number of ids. */
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
    let found: readonly (Answered | Error)[];
    let count = 1;
    try {
      const sent = (attempt: Attempt) => send(ids.slice(0, attempt.records), call, attempt);
      const { answer, records = ids.length } = await sizes.request(sized(), ids.length, sent);
      count = records;
      found = answer.values ?? (await separately(ids.slice(0, count), answer, call));
    } catch (error) {
      if (!(error instanceof RecordTooBig)) throw error;
      found = [error];
    }
    if (count >= ids.length) return found;
    const rest = ids.slice(count);
    const others = findBatch(rest, call).catch((error: Error) => rest.map(() => error));
    return [...found, ...(await others)];
  }

  async function separately(
    ids: readonly RecordId[],
    { isRefused }: BatchAnswer,
    call: Call,
  ): Promise<readonly (Answered | Error)[]> {
    if (!isRefused) return inParts(ids, call);
    const some = await alone(ids.slice(0, 2), call);
    // If two ids fail for the same reason, the request itself is invalid, whatever the ids are.
    return areAlike(some)
      ? ids.map((_, at) => some[at] ?? some[0]!)
      : [...some, ...(await inParts(ids.slice(2), call))];
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
    const own = Object.fromEntries(ids.map((id, at) => [variableFor(at), id]));
    const write = (pages: PagesToInline): UpstreamRequest<BatchAnswer> => {
      const text = textFor(ids.length, pages);
      const cost = text.pages(call.variables);
      const request: UpstreamRequest<BatchAnswer> = {
        kind: 'query',
        field: text.field,
        body: text.body(call.variables, own),
        key: text.key(call.variables),
        pages: isPart && cost === 1 ? ids.length / BATCH : cost,
        scan: (bytes) => scanned(scan(bytes), ids.length),
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
    const numbers = Array.from({ length: count }, (_, at) => at);
    const { selections: fields, fragments } = places.select(({ directives, isFirst }) =>
      numbers.map((at) =>
        fieldNode(by.field, {
          alias: keyFor(at),
          args: [argumentNode(by.argument.name, variableFor(at))],
          directives,
          selections: orTypename(isFirst ? result.select(orTypename(selections)) : []),
        }),
      ),
    );
    const ids = numbers.map((at) => variableDefinitionNode(variableFor(at), by.argument.type));
    const query = {
      ...operation,
      operation: OperationTypeNode.QUERY,
      variableDefinitions: [...operation.variableDefinitions, ...ids],
      fragments,
    };
    return writeRequest(writer, query, fields, pages, scope);
  }
}

/** Not `_rs_…`, which are the variables of page requests. */
function variableFor(at: number): string {
  return `_rsKey${at}`;
}

function* scanned(
  scanning: Pausable<ScannedBatch | undefined>,
  count: number,
): Pausable<BatchAnswer | undefined> {
  const batch = yield* scanning;
  if (batch?.records.length !== count) return undefined;
  const { records, size } = batch;
  const values = records.map((record) => record ?? null);
  return { values, isRefused: false, nullingPages: NO_PAGES, size };
}

function* readBatch(answer: Json, count: number, status: number): Pausable<BatchAnswer> {
  const { data, errors } = yield* readAnswer(answer);
  const keys = Array.from({ length: count }, (_, at) => keyFor(at));
  const isWhole = data !== undefined && (!data.isNull || errors.length === 0);
  return {
    values: isWhole || count === 1 ? valuesOf(data, errors, keys) : undefined,
    isRefused: data === undefined,
    nullingPages: yield* nullingPagesOf(data, errors),
    tooBig: tooBigIn({ data, errors }, status),
    size: answer.length,
  };
}

/**
 * Gives each field its own errors. An error without such a place may explain any null value, so it goes to every null
 * without an error; to the first field if there is none.
 */
function valuesOf(
  data: Json | undefined,
  errors: readonly UpstreamError[],
  keys: readonly string[],
): Found[] {
  const byKey = new Map<string, UpstreamError[]>(keys.map((key) => [key, []]));
  const unplaced: UpstreamError[] = [];
  for (const error of errors) {
    const at = byKey.get(String(error.path?.[0]));
    if (at) at.push({ ...error, path: error.path!.slice(1) });
    else unplaced.push({ ...error, path: [] });
  }
  const found = data?.members(new Set(keys));
  const values = keys.map((key) => ({ value: found?.get(key), errors: byKey.get(key)! }));
  const unexplained = values.filter(({ value, errors: own }) => isNone(value) && own.length === 0);
  for (const { errors: own } of unexplained.length > 0 ? unexplained : values.slice(0, 1)) {
    own.push(...unplaced);
  }
  return values;
}

function isNone(value: Json | undefined): boolean {
  return value === undefined || value.isNull;
}

function areAlike([one, other]: readonly (Answered | Error)[]): boolean {
  const [reason, otherReason] = [one, other].map((each) =>
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
  const { value, errors } = read.found;
  if (value?.isNull && errors.length === 0) return undefined;
  // The record as a whole failed: its errors are reported at the path of the field.
  const isFailed = isNone(value) && errors.length > 0;
  if (isFailed && errors.every(({ path }) => path?.length === 0)) {
    return { failure: new PageFailure(errors) };
  }
  return { record: atOnce(readValue(shape, value, errors)), unplacedErrors: NO_ERRORS };
}

const NO_ERRORS: readonly UpstreamError[] = [];
