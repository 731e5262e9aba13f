import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { codedError } from '../errors.ts';
import { checkedArguments, readConnection, type ConnectedList } from '../paging/connection.ts';
import { cursorsOf, decodeCursor, type Position } from '../paging/cursor.ts';
import { drain, endOf, limitExceeded } from '../paging/drain.ts';
import { walkBehind } from '../paging/resume.ts';
import type { WalkReader } from '../paging/shared-walk.ts';
import { walkInTurn } from '../paging/walk-slots.ts';
import type { WalkedPage, WalkedPages } from '../paging/walk.ts';
import { LARGEST_PAGE, type Adapter, type DerivedList } from '../schema/derived.ts';
import { errorsBelow, JsonText, type AnswerError, type FieldValue } from './answer.ts';
import type { Call } from './call.ts';
import { connectionShape, type ConnectionShape } from './connection-shape.ts';
import { listPages, type ListPages, type Reading } from './list-pages.ts';
import type { PageRecords } from './page-records.ts';
import type { NestedFiller, PreparedOperation } from './prepared-operation.ts';
import { argumentsOf, selectionsBelow, type SelectedField } from './selected-fields.ts';
import { failed } from './service-answer.ts';
import type { Shared } from './shared.ts';
import type { Increment } from './stream.ts';

/** An `all…` or `…Connection` field of an operation. Compiled once, answered in every call. */
export class ListField implements NestedFiller {
  readonly #shared: Shared;
  readonly #adapter: Adapter;
  readonly #field: SelectedField;
  /** Undefined for an `all…` field. */
  readonly #connection: ConnectionShape | undefined;
  readonly #pages: ListPages;

  constructor(
    shared: Shared,
    prepared: PreparedOperation,
    { adapter, kind }: DerivedList,
    field: SelectedField,
  ) {
    this.#shared = shared;
    this.#adapter = adapter;
    this.#field = field;
    if (kind === 'connection') {
      const types = { ...adapter.connection!, pageInfo: shared.served.pageInfo };
      this.#connection = connectionShape(field, types, prepared.fragments);
    }
    const args = field.uses[0]!.node.arguments;
    const places = this.#connection?.places ?? [selectionsBelow(field)];
    this.#pages = listPages(shared, prepared, adapter, places, args);
  }

  /** @param parent of a nested list: its id as JSON */
  async answer(call: Call, parent?: string): Promise<FieldValue> {
    const list = this.#open(call, parent);
    return this.#connection
      ? this.#readConnection(this.#connection, list, call)
      : this.#collect(list, call);
  }

  get key(): string {
    return this.#field.key;
  }

  /** Drains a list of the root page by page, as fast as the increments are taken. An error ends it. */
  async *increments(
    call: Call,
    label: string | undefined,
  ): AsyncGenerator<Increment, void, undefined> {
    const { key } = this;
    let drained = 0;
    try {
      const list = this.#open(call);
      const cursorOf = cursorsOf(list.nameInCursors);
      for await (const walked of this.#drain(list, call, { isStream: true })) {
        const { page, offsets } = walked;
        if (offsets.length === 0) continue;
        const items = [page.records.take(offsets)];
        const errors = errorsBelow([key], errorsIn(walked, drained));
        const extensions = { resumeAfter: cursorOf(endOf(walked)!) };
        yield { path: [key, drained], label, items, errors, extensions };
        drained += offsets.length;
      }
    } catch (error) {
      const errors = errorsBelow([key], failed(error).errors);
      yield { path: [key, drained], label, items: undefined, errors };
    }
  }

  /** @throws BAD_USER_INPUT */
  #open(call: Call, parent?: string): OpenedList {
    const { parent: type, name: field } = this.#adapter;
    const args = argumentsOf(this.#shared, type, this.#field, call.variables.values);
    const filters = this.#adapter.filters
      .map(({ name, defaultValue }) => [name, args[name], defaultValue] as const)
      .filter(([, value, byDefault]) => !isDeepStrictEqual(value, byDefault));
    const list = parent === undefined ? field : `${type}.${field}(${parent})`;
    // Null counts as absent in cursors only: a Relay client sends an unused variable as null.
    const inCursors = filters.filter(([, value]) => value !== null);
    return {
      name: nameOf(list, filters),
      nameInCursors: nameOf(list, inCursors),
      args,
      parent,
    };
  }

  /** @throws BAD_USER_INPUT, CURSOR_INVALID and the errors of drains */
  #drain(list: OpenedList, call: Call, { isStream = false } = {}): WalkedPages<PageRecords> {
    const args: DrainArguments = list.args;
    const limit = args.limit ?? undefined;
    if (limit !== undefined && limit < 0) {
      throw codedError('BAD_USER_INPUT', `\`limit\` must not be negative, but it is ${limit}.`);
    }
    const position = decodeCursor(list.nameInCursors, args.after);
    const selection = this.#pages.nameWith(call.variables.sent);
    const name = isStream ? undefined : JSON.stringify([list.name, selection, position, limit]);
    const pages = this.#walk(this.#pages, list, call, { name, position, limit });
    const { drainBudget: budget, signal } = call;
    return drain(pages, { limit, budget, signal, toCursor: cursorsOf(list.nameInCursors) });
  }

  /** Walks a nested list, or, together with equal walks and in its turn, a list of the root. */
  #walk(
    pages: ListPages,
    list: OpenedList,
    call: Call,
    { name, position, limit }: Walk,
  ): WalkedPages<PageRecords> {
    if (list.parent !== undefined) return walkBehind(pages.listFor(call, list), position, limit);
    const { walks, slots } = this.#shared.lists;
    const begin = (readers: WalkReader) => {
      const paged = pages.listFor(call.forWalk(readers), list);
      const walk = () => walkBehind(paged, position, limit);
      // One page needs no turn.
      const isShort = limit !== undefined && limit <= paged.size.limit;
      return isShort ? walk() : walkInTurn(slots, call, walk, readers.signal);
    };
    return walks.join(name, begin, call);
  }

  async #collect(list: OpenedList, call: Call): Promise<FieldValue> {
    const parts: Buffer[] = [];
    const errors: AnswerError[] = [];
    let drained = 0;
    for await (const walked of this.#drain(list, call)) {
      const { page, offsets } = walked;
      if (offsets.length === 0) continue;
      // The first page of a nested list may be that of another field, too.
      const text =
        list.parent !== undefined ? page.records.textOf(offsets) : page.records.take(offsets);
      call.hold(text, text.length);
      call.onDrained?.(text);
      parts.push(text);
      errors.push(...errorsIn(walked, drained));
      drained += offsets.length;
    }
    return { value: JsonText.ofList(parts), errors };
  }

  async #readConnection(shape: ConnectionShape, list: OpenedList, call: Call): Promise<FieldValue> {
    const { values } = call.variables;
    const selected = shape.selected(values);
    const isRead = selected.some(({ name }) => ['edges', 'nodes', 'pageInfo'].includes(name));
    const totals = selected.filter(({ name }) => name === 'totalCount');
    const { slots } = this.#shared.lists;
    const args = checkedArguments(list.nameInCursors, this.#shared.connectionMax, list.args);
    const isBackward = args.last !== undefined;
    // Without records, the fields of one that fails are no reason for an error.
    const pages = args.first === 0 || args.last === 0 ? this.#pages.bare : this.#pages;
    const connected: ConnectedList<PageRecords> = {
      // The pages in front of the last records are not in the answer.
      ...pages.listFor(isBackward ? call.forOverhead() : call, list),
      inTurn: (begin) => walkInTurn(slots, call, begin),
    };
    let ofTotal: readonly AnswerError[] = [];
    const noTotal = (thrown: unknown) => {
      ofTotal = failed(thrown).errors;
      return null;
    };
    const [read, total] = await Promise.all([
      isRead ? readConnection(connected, args) : NOTHING,
      totals.length > 0 ? this.#total(list, call).catch(noTotal) : null,
    ]);
    if (isBackward) {
      // Pages of overhead have charged the caller, but have not checked the scope `drain` for what is returned.
      const returned = Math.ceil(read.places.length / LARGEST_PAGE);
      call.budget.spend(returned, { isCharged: true });
    }
    const connection = { ...read, total, cursorOf: cursorsOf(list.nameInCursors), values };
    const text = shape.write(connection);
    call.hold(connection, text.length);
    const ofTotals = totals.flatMap(({ key }) => errorsBelow([key], ofTotal));
    return { value: new JsonText([text]), errors: [...ofTotals, ...shape.errorsIn(connection)] };
  }

  async #total(list: OpenedList, call: Call): Promise<number> {
    const { known } = this.#shared.lists;
    const { bare } = this.#pages;
    if (this.#adapter.count !== undefined) {
      const { count } = await bare.listFor(call, list).fetchPage(null, 1);
      if (count !== undefined) return count;
    }
    const name = JSON.stringify([list.name, 'total']);
    const whole = { name, position: null, limit: undefined };
    const kept = known.totalOf(list.name, (signal) => {
      const gateway = this.#shared.gatewayCall(call.variables, signal);
      return this.#walk(bare, list, gateway, whole);
    });
    if (kept !== undefined) return kept;
    const { max } = call.drainBudget;
    let total = 0;
    for await (const { offsets } of this.#walk(bare, list, call.forOverhead(), whole)) {
      total += offsets.length;
      if (total > max) throw limitExceeded(max);
    }
    return total;
  }
}

interface DrainArguments {
  readonly limit?: number | null | undefined;
  readonly after?: string | null | undefined;
}

interface Walk {
  /** Names equal walks; undefined: it is shared with nobody. */
  readonly name: string | undefined;
  readonly position: Position | null;
  readonly limit: number | undefined;
}

const NOTHING = { places: [], hasNextPage: false, hasPreviousPage: false };

/** A list with the arguments of one call. */
interface OpenedList extends Reading {
  /** The same in its cursors, where a filter that is null counts as absent. */
  readonly nameInCursors: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** @param from the index of the page's first record in the list */
function errorsIn({ page, offsets }: WalkedPage<PageRecords>, from: number): AnswerError[] {
  const errors: AnswerError[] = [];
  for (const [at, offset] of offsets.entries()) {
    for (const error of page.records.errorsAt(offset)) {
      const [place, ...rest] = error.path ?? [];
      errors.push({ ...error, path: place === undefined ? [] : [from + at, ...rest] });
    }
  }
  return errors;
}

type Filter = readonly [name: string, value: unknown, byDefault: unknown];

function nameOf(list: string, filters: readonly Filter[]): string {
  if (filters.length === 0) return list;
  const chosen = JSON.stringify(filters.map(([name, value]) => [name, value]));
  return `${list}#${hash('sha256', chosen, 'base64url').slice(0, 16)}`;
}
