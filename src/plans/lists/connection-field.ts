import type { AnswerError, Path, UpstreamError } from '../../answers/answer-errors.ts';
import {
  checkedCounts,
  readBackward,
  readForward,
  type Edge,
  type Slice,
  type SliceEnd,
} from '../../paging/connection.ts';
import { totalFrom } from '../../paging/counts.ts';
import {
  CursorEncoder,
  decodeCursor,
  type PageBounds,
  type PlacedRecord,
} from '../../paging/cursor.ts';
import { drainPages, interrupted } from '../../paging/drain.ts';
import { positionOf } from '../../paging/walk.ts';
import { LARGEST_PAGE } from '../../schema/derived.ts';
import type { Requester } from '../call.ts';
import {
  holdPages,
  Later,
  writeRecord,
  writeRecords,
  type FieldValue,
  type ListRecord,
  type Output,
} from '../output.ts';
import {
  errorsOfList,
  namingFailed,
  NullList,
  pageFetcher,
  type PageSource,
} from '../pages/page.ts';
import { ListInParts, type FieldStreams } from './all-field.ts';
import type { DrainArguments, DrainedList } from './drains.ts';
import type { ConnectionField, ConnectionShape, OpenedList } from './list-field.ts';

type Edges = readonly Edge<ListRecord>[];

/** Reads a `…Connection` field. @param streams in an answer in parts */
export async function readConnection(
  open: () => OpenedList,
  path: Path,
  streams?: FieldStreams,
): Promise<FieldValue> {
  const output: Output = { parts: [], errors: [], later: streams && new Later() };
  try {
    const connection = new Connection(open(), path);
    const { fields, isTotalOnly } = connection.shape;
    if (streams) streams.onOpen(() => connection.close());
    if (streams && streams.lists.size > 0) await connection.begin();
    else if (!isTotalOnly) await connection.finish();
    const now = streams ? fields.filter(({ deferred }) => !deferred) : fields;
    output.parts.push('{');
    if (!(await writeFields(connection, now, output, streams)))
      return { parts: undefined, errors: output.errors };
    output.parts.push('}');
    if (streams) {
      for (const [use, deferred] of Map.groupBy(fields, (field) => field.deferred)) {
        if (!use) continue;
        const { label } = use;
        const read = () => readDeferred(connection, deferred, streams);
        output.later!.fields.push({ path, label, read });
      }
    }
    return output;
  } catch (error) {
    return { parts: undefined, errors: [...output.errors, ...errorsOfList(error, path)] };
  }
}

/** Reads what `@defer` puts off of a connection. @returns the members of the object */
async function readDeferred(
  connection: Connection,
  fields: readonly ConnectionField[],
  streams: FieldStreams,
): Promise<FieldValue> {
  const output: Output = { parts: [], errors: [], later: new Later() };
  try {
    const isWritten = await writeFields(connection, fields, output, streams);
    return isWritten ? output : { parts: undefined, errors: output.errors };
  } catch (error) {
    const { path } = connection;
    return { parts: undefined, errors: [...output.errors, ...errorsOfList(error, path)] };
  }
}

/**
 * Writes these fields of a connection, as members of an object.
 *
 * @returns false when a record is null that must not be
 */
async function writeFields(
  connection: Connection,
  fields: readonly ConnectionField[],
  output: Output,
  streams: FieldStreams | undefined,
): Promise<boolean> {
  const { parts, errors } = output;
  const { path, cursors } = connection;
  errors.push(...connection.takeErrors());
  for (const [index, field] of fields.entries()) {
    const { key } = field;
    parts.push(`${index > 0 ? ',' : ''}${JSON.stringify(key)}:`);
    if ('refusal' in field && field.refusal) {
      errors.push({ thrown: field.refusal, path: [...path, key] });
      return false;
    }
    switch (field.kind) {
      case 'edges':
      case 'nodes': {
        const at = { path: [...path, key], offset: 0 };
        const stream = streams?.lists.get(key);
        parts.push('[');
        if (stream) {
          const list = new ListInParts(at.path, stream, {
            open: () => connection.parts(),
            errorsAt: path,
            write: (edges: Edges, into, place) => writeEdges(cursors, field, edges, into, place),
          });
          if (!(await list.begin(output))) return false;
          output.later!.lists.push(list);
        } else {
          await connection.finish();
          errors.push(...connection.takeErrors());
          if (!writeEdges(cursors, field, connection.edges(), output, at)) return false;
        }
        parts.push(']');
        break;
      }
      case 'pageInfo':
        parts.push(await pageInfo(connection, field));
        errors.push(...connection.takeErrors());
        break;
      case 'totalCount':
        try {
          parts.push(String(await connection.total()));
        } catch (error) {
          if (error instanceof NullList) throw error;
          errors.push(...errorsOfList(error, [...path, key]));
          parts.push('null');
        }
        break;
      case 'typename':
        parts.push(JSON.stringify(field.name));
    }
  }
  return true;
}

/** @param at the path of the list, and how many of its elements were written before */
function writeEdges(
  cursors: CursorEncoder,
  field: Extract<ConnectionField, { kind: 'edges' | 'nodes' }>,
  edges: Edges,
  output: Output,
  at: { readonly path: Path; readonly offset: number },
): boolean {
  if (field.kind === 'nodes') {
    const records = edges.map(({ record }) => record);
    return writeRecords(records, field.selection, output, at);
  }
  if (field.refusedEdge && edges.length > 0) {
    output.errors.push({ thrown: field.refusedEdge, path: [...at.path, at.offset] });
    return false;
  }
  let written = new EdgeBytes(edges.length * BYTES_OF_EDGE);
  for (let i = 0; i < edges.length; i += 1) {
    const { record, page: bounds } = edges[i]!;
    if (i > 0) written.byte(COMMA);
    // The head of the first field has it, but @skip and @include can leave an edge without fields.
    if (field.fields.length === 0) written.byte(OPENING_BRACE);
    for (const member of field.fields) {
      const { page, index } = record;
      written.bytes(member.head, 0, member.head.length);
      if (member.kind === 'typename') continue;
      if (member.kind === 'cursor') written.cursor(cursors, bounds, record);
      else if (page.kind === 'bytes') {
        const { selection } = member;
        written.bytes(page.bytes, page.startOf(selection, index), page.endOf(selection, index));
      } else {
        output.parts.push(written.taken());
        written = new EdgeBytes(BYTES_OF_EDGE);
        const path = [...at.path, at.offset + i, member.key];
        if (!writeRecord(record, member.selection, output, path)) return false;
      }
    }
    written.byte(CLOSING_BRACE);
  }
  if (edges.length > 0) output.parts.push(written.taken());
  return true;
}

/** The expected size of an edge with a cursor; larger edges make the buffer grow. */
const BYTES_OF_EDGE = 256;
const [COMMA, QUOTE, OPENING_BRACE, CLOSING_BRACE] = [44, 34, 123, 125];
/** So few bytes are written sooner than a copy is begun. */
const SHORT = 24;

/** Writes edges into one buffer: a separate piece for each value would cost more than the value. */
class EdgeBytes {
  #into: Buffer;
  #end = 0;

  constructor(expected: number) {
    this.#into = Buffer.allocUnsafe(expected);
  }

  byte(byte: number): void {
    this.#makeRoom(1);
    this.#into[this.#end++] = byte;
  }

  bytes(from: Buffer, start: number, end: number): void {
    this.#makeRoom(end - start);
    if (end - start > SHORT) {
      this.#end += from.copy(this.#into, this.#end, start, end);
      return;
    }
    for (let at = start; at < end; at += 1) this.#into[this.#end++] = from[at]!;
  }

  cursor(cursors: CursorEncoder, page: PageBounds, record: PlacedRecord): void {
    this.#makeRoom(cursors.prepare(page, record) + 2);
    this.#into[this.#end] = QUOTE;
    this.#end = cursors.write(this.#into, this.#end + 1);
    this.#into[this.#end++] = QUOTE;
  }

  taken(): Buffer {
    return this.#into.subarray(0, this.#end);
  }

  #makeRoom(bytes: number): void {
    if (this.#into.length - this.#end >= bytes) return;
    const larger = Buffer.allocUnsafe(2 * (this.#end + bytes));
    this.#into.copy(larger, 0, 0, this.#end);
    this.#into = larger;
  }
}

async function pageInfo(
  connection: Connection,
  { fields }: Extract<ConnectionField, { kind: 'pageInfo' }>,
): Promise<string> {
  const end = await connection.finish();
  const { cursors } = connection;
  const edges = connection.edges();
  const cursorAt = (edge: Edge<ListRecord> | undefined) =>
    edge ? `"${cursors.encode(positionOf(edge.page, edge.record))}"` : 'null';
  const members = fields.map((field) => {
    const key = JSON.stringify(field.key);
    switch (field.kind) {
      case 'hasNextPage':
      case 'hasPreviousPage':
        return `${key}:${String(end[field.kind])}`;
      case 'startCursor':
        return `${key}:${cursorAt(edges[0])}`;
      case 'endCursor':
        return `${key}:${cursorAt(edges.at(-1))}`;
      case 'typename':
        return `${key}:${JSON.stringify(field.name)}`;
    }
  });
  return `{${members.join(',')}}`;
}

/** One connection with its arguments: read once for all that is selected of it, a page at a time. */
class Connection {
  readonly path: Path;
  readonly shape: ConnectionShape;
  readonly cursors: CursorEncoder;
  readonly #list: OpenedList;
  /** Whether it is read from the end, with `last`. */
  readonly #isBackward: boolean;
  readonly #slice: Slice<ListRecord>;
  readonly #read: Edges[] = [];
  #errors: AnswerError[] = [];
  #end: SliceEnd | undefined;
  /** Kept when it fails, so that all later reads fail in the same way. */
  #reading: Promise<void> | undefined;
  #counting: Promise<number> | undefined;

  /** @throws BAD_USER_INPUT, CURSOR_INVALID */
  constructor(list: OpenedList, path: Path) {
    const { field, call, args, keys } = list;
    const { adapter, parts } = field;
    const { after: afterName, last: lastName, before: beforeName } = adapter.connection!;
    const { first: firstGiven, [afterName]: afterGiven } = args;
    const { [lastName]: lastGiven, [beforeName]: beforeGiven } = args;
    const max = parts.connectionMax;
    const { first, last } = checkedCounts(firstGiven, lastGiven, { max, lastName });
    const after = decodeCursor(keys.cursors, afterGiven);
    const before = decodeCursor(keys.cursors, beforeGiven);
    this.path = path;
    this.shape = field.connection!;
    if (this.shape.refusal) throw this.shape.refusal;
    this.cursors = new CursorEncoder(keys.cursors);
    this.#list = list;
    this.#isBackward = last !== undefined;
    const { signal } = call;
    const shown = list.source('shown');
    const fetchIdentities = pageFetcher(list.source('bare'), call.forSearch);
    const searched = { fetchIdentities, index: parts.drains.indexOf(keys.walk) };
    // The inlined page ends where it ends, also behind a border.
    const source = before ? { ...shown, inlinedPage: undefined } : shown;
    const fetcher = (requester: Requester) => {
      const fetchPage = pageFetcher(source, requester);
      return this.shape.hasCursors ? namingFailed(fetchPage, fetchIdentities) : fetchPage;
    };
    if (last === undefined) {
      const bounds = { first, after, before, signal };
      this.#slice = readForward({ list: searched, fetchPage: fetcher(call) }, bounds);
      return;
    }
    const walkOf = (what: 'shown' | 'bare') => (tail: DrainArguments['tail']) =>
      this.#drain(list.drained(list.source(what), undefined), { position: after, tail });
    this.#slice = readBackward(
      {
        list: searched,
        fetchPage: fetcher(call.forSearch),
        walk: walkOf('shown'),
        isCostly: parts.sizes.of(shown.requests.sized) !== undefined,
        walkIdentities: walkOf('bare'),
      },
      { last, before, after, signal },
    );
  }

  /** Reads the edges of the first page. */
  async begin(): Promise<void> {
    if (!this.#end && this.#read.length === 0) await this.#readOn();
  }

  /** Reads to the end. */
  async finish(): Promise<SliceEnd> {
    for (;;) {
      if (this.#end) return this.#end;
      await this.#readOn();
    }
  }

  /** Returns the edges read so far. */
  edges(): Edges {
    return this.#read.length === 1 ? this.#read[0]! : this.#read.flat();
  }

  /**
   * Returns the edges page by page.
   *
   * @throws DRAIN_INTERRUPTED after the first page, with `drained` and `resumeAfter`
   */
  async *parts() {
    let drained = 0;
    for (let part = 0; ; part += 1) {
      try {
        if (part >= this.#read.length && !this.#end) await this.#readOn();
      } catch (error) {
        const last = this.#read.findLast((edges) => edges.length > 0)?.at(-1);
        if (!last) throw error;
        const resumeAfter = this.cursors.encode(positionOf(last.page, last.record));
        throw interrupted(error, { drained, resumeAfter, delivered: 'parts' });
      }
      const records = this.#read[part];
      if (!records) return;
      drained += records.length;
      yield { records, unplacedErrors: this.takeErrors() };
    }
  }

  /** Returns the unplaced errors of the pages, each of them once. */
  takeErrors(): readonly AnswerError[] {
    return this.#errors.splice(0);
  }

  /** Counts the records of the whole list, once. */
  total(): Promise<number> {
    return (this.#counting ??= this.#count());
  }

  /** Ends the reading. */
  async close(): Promise<void> {
    await this.#slice.return(NOWHERE);
  }

  #readOn(): Promise<void> {
    return (this.#reading ??= this.#readNext());
  }

  async #readNext(): Promise<void> {
    const { done, value } = await this.#slice.next();
    if (done) {
      this.#end = value;
    } else {
      const { edges, unplacedErrors } = value;
      const { call } = this.#list;
      if (this.#isBackward) this.#spendFor(edges.length);
      const { path } = this;
      for (const error of unplacedErrors as readonly UpstreamError[])
        this.#errors.push({ ...error, path });
      // `#reading` is still set: another reader would otherwise read the next page before this one is kept.
      await holdPages(call, edges);
      const { cursorsPerEdge: count } = this.shape;
      const waiting = count > 0 ? call.hold(edges, count * this.#cursorBytes(edges)) : undefined;
      if (waiting) await waiting;
      this.#read.push(edges);
    }
    this.#reading = undefined;
  }

  /** Reading from the end is charged as a search, so its edges count here. */
  #spendFor(edges: number): void {
    const { field, call } = this.#list;
    const { pages } = field.shown.request(call.variables, { first: undefined, after: null });
    call.pages.spend((edges / LARGEST_PAGE) * pages, { isCharged: true });
  }

  #cursorBytes(edges: Edges): number {
    let bytes = 0;
    let each = 0;
    let last: PageBounds | undefined;
    for (const { page } of edges) {
      if (page !== last) each = this.cursors.lengthIn((last = page));
      bytes += each;
    }
    return bytes;
  }

  #drain(walked: DrainedList, { position, tail }: Pick<DrainArguments, 'position' | 'tail'>) {
    const { call, field } = this.#list;
    const { signal, drainBudget: budget } = call;
    const limit = undefined;
    const keepsAll = false;
    const options = { position, tail, limit, call, keepsAll, isSearch: true };
    return drainPages(field.parts.drains.walk(walked, options), {
      limit,
      position,
      budget,
      signal,
      toCursor: (at) => this.cursors.encode(at),
      // A part of a count, or of what is read from the end, is of no use.
      delivered: 'result',
    });
  }

  async #count(): Promise<number> {
    const list = this.#list;
    const { keys, field } = list;
    const { drains } = field.parts;
    const { totals } = drains;
    const known = totals.of(keys.walk);
    const hasCount = field.adapter.count !== undefined;
    if (known && hasCount && known.age < REPORTED_MS) return known.total;
    const shown = list.source('shown');
    if (hasCount) {
      // Begun before a mutation is sent, and kept where the totals of that time are: later operations do not get it.
      const keep = totals.begin(keys.walk);
      const reported = await this.#countOfService(shown);
      if (reported !== undefined) {
        keep(reported);
        return reported;
      }
    }
    const whole = this.#wholeList();
    if (whole) return whole.length;
    if (known) {
      if (known.isOld) drains.countAgain(list.drained(list.source('bare'), undefined));
      return known.total;
    }
    // The inlined first page may be the whole list.
    const walked = shown.inlinedPage
      ? list.drained(shown, undefined)
      : list.drained(list.source('bare'), list.isNested ? undefined : 'total');
    let count = 0;
    // A walk of the whole list keeps the total.
    for await (const { records } of this.#drain(walked, { position: null })) {
      count += records.length;
    }
    return count;
  }

  /** Returns the edges, if they were read and are the whole list. */
  #wholeList(): Edges | undefined {
    const { adapter } = this.#list.field;
    const { [adapter.connection!.after]: after, [adapter.connection!.before]: before } =
      this.#list.args;
    const isFromStart = !this.#isBackward && after == null && before == null;
    return isFromStart && this.#end?.hasNextPage === false ? this.edges() : undefined;
  }

  /** Asks the service, unless the list's first page is known to be the whole list; undefined if its count is not that. */
  async #countOfService({ inlinedPage }: PageSource): Promise<number | undefined> {
    const { call, keys, field, source } = this.#list;
    const { counts } = field.parts.drains;
    const inlined = inlinedPage?.page;
    if (counts.isRefuted(keys.walk) || inlined?.hasNextPage === false) return undefined;
    const page =
      inlined?.total === undefined
        ? await pageFetcher(source('bare'), call)({ first: 1, after: null }, call.signal)
        : inlined;
    counts.note(keys.walk, page);
    return totalFrom(counts, keys.walk, page);
  }
}

/** A count that the service reports is reused for this time, ms: it costs one small request. */
const REPORTED_MS = 5_000;

const NOWHERE = { hasNextPage: false, hasPreviousPage: false };
