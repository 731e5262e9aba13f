import {
  isObjectType,
  OperationTypeNode,
  type GraphQLError,
  type GraphQLObjectType,
  type SelectionNode,
} from 'graphql';
import type { UpstreamError } from '../../answers/answer-errors.ts';
import {
  member,
  NO_PAGES,
  readEnvelope,
  slotScanner,
  slotsIn,
  type Envelope,
  type ScannedSlots,
  type ServiceValue,
} from '../../answers/envelope.ts';
import { readValue, type Reading } from '../../answers/read.ts';
import { keyBytesOf, shapeOf, type Shape } from '../../answers/shape.ts';
import type { Json } from '../../json.ts';
import { PagesRefused } from '../../paging/failures.ts';
import { lookUp, type LookedUp } from '../../paging/look-up.ts';
import { PAGES_PER_OPERATION, type FetchPage } from '../../paging/page.ts';
import { atOnce, type Pausable } from '../../pausable.ts';
import { Slots } from '../../queue.ts';
import type { Adapter, ByIdField, Entity } from '../../schema/derived.ts';
import type { Call, Requester, UpstreamRequest } from '../call.ts';
import { walkKeys, type FieldParts } from '../lists/list-field.ts';
import { holdPage, type ListRecord } from '../output.ts';
import {
  NullList,
  PageFailure,
  pageFetcher,
  pageRequests,
  pageSizesOf,
  type PageSource,
} from '../pages/page.ts';
import { RecordTooBig, requestSparingParents, type SizedList } from '../requests/accepted-sizes.ts';
import {
  argumentNode,
  fieldNode,
  fragmentNode,
  orTypename,
  variableDefinitionNode,
  writeRequest,
  type PagesToInline,
  type RequestText,
} from '../requests/request-text.ts';
import { resultReading, type ResultReading } from '../requests/results.ts';

/*
 * How records are found by their ids: with the upstream's by-id field, many ids in one request, or else in a list at the
 * root, where earlier walks have seen them.
 */

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

/** @param entity with a lookup @param selections of each record */
export function recordLookup(
  parts: FieldParts,
  entity: Entity,
  selections: readonly SelectionNode[],
): (call: Call) => RecordLookup {
  const lookup = entity.lookup!;
  return lookup.kind === 'id'
    ? lookupById(parts, lookup, selections)
    : lookupInList(parts, entity, lookup.adapter, selections);
}

/** Ids per request. */
const BATCH = 50;
/** A failed batch of this number of ids or fewer is sent again as single requests. */
const FEW = 6;

/** The answer for one id: bytes if the scanner took the record, null without a record, otherwise a value to be read. */
type Answered = Buffer | ServiceValue | null;

/** The answers for several ids, in their order. An error stands for an answer that did not arrive. */
type Answers = readonly (Answered | Error)[];

/** The answer to a batch. */
interface BatchAnswer extends Pick<Envelope, 'nullingPages' | 'tooBig' | 'size'> {
  /** One for each id; undefined if the request failed as a whole, so that nothing is known of a single id. */
  readonly values: readonly Answered[] | undefined;
  /** Whether the upstream refused to execute the request: a variable, or the request itself, is invalid. */
  readonly isRefused: boolean;
}

function lookupById(
  { writer, scope, operation, sizes, telemetry }: FieldParts,
  by: ByIdField,
  selections: readonly SelectionNode[],
): (call: Call) => RecordLookup {
  const root = scope.schema.getQueryType() as GraphQLObjectType;
  const result = resultReading(by.result, scope, telemetry);
  const type = by.result
    ? (scope.schema.getType(by.result.success.name) as GraphQLObjectType)
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
  const single = textFor(1, 'all');
  const sized: SizedList = {
    list: `${root.name}.${by.field}`,
    selection: single.selection,
    begin: undefined,
    hasInlinedPages: single.hasInlinedPages,
  };

  return (call) => ({
    name: `${by.field} ${single.name(call.variables)}`,
    aliasBytes,
    find: async (ids) => {
      // A request is long, so each is written shortly before it is sent.
      const slots = new Slots(() => PAGES_PER_OPERATION);
      const answers = await Promise.all(
        batches(ids, sizes.of(sized)).map((batch) =>
          slots.run(() => findBatch(batch, call)).catch(failAll(batch)),
        ),
      );
      return answers.flat().map((answer) => resultOf(shape, answer, result));
    },
  });

  async function findBatch(ids: readonly RecordId[], call: Call): Promise<Answers> {
    let answers: Answers;
    let count = 1;
    try {
      const accepted = await sizes.request<BatchAnswer>(sized, ids.length, {
        write: ({ records, isPart }, pages) => request(ids.slice(0, records), call, pages, isPart),
        send: (sent) => call.request(sent),
      });
      count = accepted.records ?? ids.length;
      const { values, isRefused } = await heldAnswer(accepted.answer, call);
      answers = values ?? (await separately(ids.slice(0, count), isRefused, call));
    } catch (error) {
      if (!(error instanceof RecordTooBig)) throw error;
      answers = [error];
    }
    if (count >= ids.length) return answers;
    const rest = ids.slice(count);
    return [...answers, ...(await findBatch(rest, call).catch(failAll(rest)))];
  }

  async function separately(
    ids: readonly RecordId[],
    isRefused: boolean,
    call: Call,
  ): Promise<Answers> {
    if (!isRefused) return inParts(ids, call);
    const firstTwo = await inParts(ids.slice(0, 2), call);
    // If two ids fail for the same reason, the request itself is invalid, whatever the ids are.
    return areAlike(firstTwo)
      ? ids.map((_, at) => firstTwo[at] ?? firstTwo[0]!)
      : [...firstTwo, ...(await inParts(ids.slice(2), call))];
  }

  /** Separates the ids that made a batch fail from the others. Mostly it is one id, which halving finds soonest. */
  async function inParts(ids: readonly RecordId[], call: Call): Promise<Answers> {
    const size = ids.length <= FEW ? 1 : Math.ceil(ids.length / 2);
    const answers = batches(ids, size).map((part) =>
      requestPart(part, call).then(({ values }) => values ?? inParts(part, call), failAll(part)),
    );
    return (await Promise.all(answers)).flat();
  }

  async function requestPart(ids: readonly RecordId[], call: Call): Promise<BatchAnswer> {
    const send = (sent: UpstreamRequest<BatchAnswer>) => call.request(sent);
    const write = (pages: PagesToInline) => request(ids, call, pages, false);
    return heldAnswer(await requestSparingParents(send, write), call);
  }

  function request(
    ids: readonly RecordId[],
    { variables }: Call,
    pages: PagesToInline,
    isPart: boolean,
  ): UpstreamRequest<BatchAnswer> {
    const text = textFor(ids.length, pages);
    const cost = text.pages(variables);
    return {
      kind: 'query',
      body: text.body(variables, Object.fromEntries(ids.map((id, at) => [variableFor(at), id]))),
      key: text.key(variables),
      pages: isPart && cost === 1 ? ids.length / BATCH : cost,
      scan: (bytes) => scanned(scanFor(ids.length)(bytes)),
      read: (json, status) => readBatch(json, ids.length, status),
    };
  }

  function written(count: number, pages: PagesToInline): RequestText {
    const fields = keysOf(count).map((alias, at) =>
      fieldNode(by.field, {
        alias,
        args: [argumentNode(by.argument.name, variableFor(at))],
        selections: result.select(orTypename(selections)),
      }),
    );
    const ids = fields.map((_, at) => variableDefinitionNode(variableFor(at), by.argument.type));
    const query = {
      ...operation,
      operation: OperationTypeNode.QUERY,
      variableDefinitions: [...operation.variableDefinitions, ...ids],
    };
    return writeRequest(writer, query, fields, pages, scope);
  }
}

/** Counts the bytes of an answer. Only of one that is used: others are dropped before the operation ends. */
async function heldAnswer(answer: BatchAnswer, call: Call): Promise<BatchAnswer> {
  await call.hold(answer, answer.size);
  return answer;
}

/** Makes a function that returns the error for each of these ids. */
function failAll(ids: readonly RecordId[]): (error: Error) => Answers {
  return (error) => ids.map(() => error);
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

/** An unplaced error may explain any null, so every null without an error gets it; if there is none, the first record. */
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
  return isNull(value) && errors.length === 0;
}

function isNull(value: Json | undefined): boolean {
  return value === undefined || value.isNull;
}

function areAlike(answers: Answers): boolean {
  const [reason, otherReason] = answers.map((answer) =>
    !answer || answer instanceof Error || Buffer.isBuffer(answer) || !isNull(answer.value)
      ? undefined
      : answer.errors[0]?.message,
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
  answer: Answered | Error,
  result: ResultReading,
): LookupResult | undefined {
  if (answer instanceof Error) return { failure: answer };
  if (Buffer.isBuffer(answer)) return { record: answer, unplacedErrors: NO_ERRORS };
  if (!answer) return undefined;
  const read = result.read(answer);
  if (read.kind === 'other') return undefined;
  if (read.kind === 'failure') {
    return read.isMissing ? undefined : { failure: new PageFailure(read.errors) };
  }
  const { value, errors } = read.answered;
  if (value?.isNull && errors.length === 0) return undefined;
  // The record as a whole failed: its errors are reported at the path of the field.
  const isFailed = isNull(value) && errors.length > 0;
  if (isFailed && errors.every(({ path }) => path?.length === 0)) {
    return { failure: new PageFailure(errors) };
  }
  return { record: atOnce(readValue(shape, value, errors)), unplacedErrors: NO_ERRORS };
}

const NO_ERRORS: readonly UpstreamError[] = [];

/** Finds records by their ids in a list at the root, with the page index of earlier walks. */
function lookupInList(
  { writer, scope, operation, drains, telemetry, sizes }: FieldParts,
  { type }: Entity,
  adapter: Adapter,
  selections: readonly SelectionNode[],
): (call: Call) => RecordLookup {
  const requests = (recordSelections: (readonly SelectionNode[])[]) =>
    pageRequests({
      writer,
      scope,
      operation,
      adapter,
      args: [],
      recordSelections,
      counts: false,
      telemetry,
    });
  const shown = requests([onlyOf(type.name, adapter, selections)]);
  const bare = requests([[]]);
  // This is the list that drains without filters read, so both share its page index.
  const keyOf = walkKeys(adapter.name, defaultsOf(adapter), operation);
  // Created here: see `fetcherOf`.
  const sizeNow = () => sizes.of(bare.sized);

  return (call) => {
    const { variables } = call;
    const fetchShown = fetcherOf({ adapter, requests: shown, variables, telemetry, sizes });
    const fetchBare = fetcherOf({ adapter, requests: bare, variables, telemetry, sizes });
    return {
      name: `${type.name} ${shown.name(variables)}`,
      aliasBytes: shown.keyBytes.ofAliases,
      find: async (ids) => {
        // With a custom scalar, 12 and "12" are two ids of one record.
        const identities = ids.map((id) => `${type.name}:${textOf(id)}`);
        const list = {
          fetchPage: held(call, fetchShown(call)),
          fetchIdentities: fetchBare(call.forOverhead),
          ...drains.lookup({
            key: keyOf(variables),
            field: `${adapter.parent}.${adapter.name}`,
            name: adapter.name,
            origin: { caller: call.caller, cause: call.cause },
            identities: fetchBare,
            sizeNow,
            pageSizes: pageSizesOf(adapter),
          }),
        };
        const { signal, pages } = call;
        const options = { signal, pages: pages.forOverhead };
        const results = await lookUp(list, [...new Set(identities)], options);
        return identities.map((identity) => lookupResult(results.get(identity)));
      },
    };
  };
}

/** Routers may write 12 as 12.0. */
function textOf(id: RecordId): string {
  if (id.startsWith('"')) return JSON.parse(id) as string;
  const number = Number(id);
  return Number.isSafeInteger(number) ? String(number) : id;
}

function lookupResult(result: LookedUp<ListRecord> | undefined): LookupResult | undefined {
  if (!result) return undefined;
  if ('error' in result) return failedLookup(result.error);
  return {
    record: result.record,
    unplacedErrors: result.unplacedErrors as readonly UpstreamError[],
  };
}

/** Created here, not where the call is in scope: the walk of a list keeps it for later callers. */
function fetcherOf(source: PageSource): (requester: Requester) => FetchPage<ListRecord> {
  return (requester) => orNothing(pageFetcher(source, requester));
}

/** Counts the pages, whose records are kept, against the memory that answers may hold. */
function held(call: Call, fetchPage: FetchPage<ListRecord>): FetchPage<ListRecord> {
  return async (request, signal) => {
    const page = await fetchPage(request, signal);
    try {
      await holdPage(call, page);
    } catch (error) {
      const { message, extensions } = error as GraphQLError;
      // A failure of the page itself would be narrowed down to one of its records.
      throw new PagesRefused(message, { extensions });
    }
    return page;
  };
}

/** Turns a list that is null into an empty page. */
function orNothing(fetchPage: FetchPage<ListRecord>): FetchPage<ListRecord> {
  return async (request, signal) => {
    try {
      return await fetchPage(request, signal);
    } catch (error) {
      if (error instanceof NullList) return { items: [], hasNextPage: false, endCursor: null };
      throw error;
    }
  };
}

function defaultsOf({ filters }: Adapter): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    filters
      .map((filter) => [filter.name, filter.defaultValue] as const)
      .filter(([, value]) => value !== undefined),
  );
}

/** Restricts selections to one type in a list of several types. */
function onlyOf(
  type: string,
  { nodeType }: Adapter,
  selections: readonly SelectionNode[],
): readonly SelectionNode[] {
  return isObjectType(nodeType) ? selections : [fragmentNode(type, selections)];
}
