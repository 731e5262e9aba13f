import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { codedError } from '../errors.ts';
import {
  checkedArguments,
  readConnection,
  type ConnectedList,
  type ConnectionArguments,
} from '../paging/connection.ts';
import { cursorsOf, decodeCursor, type Position } from '../paging/cursor.ts';
import { drain, endOf, limitExceeded, walkTogether } from '../paging/drain.ts';
import { walkList, type WalkedPage, type WalkedPages } from '../paging/walk.ts';
import { causeOf } from '../paging/page.ts';
import { walkBehind } from '../paging/resume.ts';
import { walkInTurn } from '../paging/walk-slots.ts';
import { LARGEST_PAGE, type Adapter, type DerivedList } from '../schema/derived.ts';
import { JsonText, withPath, type AnswerError, type FieldValue, type Path } from './answer.ts';
import type { Call, Requester } from './call.ts';
import { ConnectionShape } from './connection-shape.ts';
import type { Shared } from './shared.ts';
import { ListPages, type Reading } from './list-pages.ts';
import type { ListRecord } from './list-record.ts';
import type { NestedFiller, PreparedOperation } from './prepared-operation.ts';
import { argumentsReader, selectionsBelow, type SelectedField } from './selected-fields.ts';
import { errorsAt } from './service-answer.ts';

type Values = Readonly<Record<string, unknown>>;

/** An `all…` or `…Connection` field of an operation. Compiled once, answered in every call. */
export class ListField implements NestedFiller {
  readonly key: string;
  readonly #shared: Shared;
  readonly #adapter: Adapter;
  readonly #argumentsFor: ReturnType<typeof argumentsReader>;
  /** Undefined for an `all…` field. */
  readonly #connection: ConnectionShape | undefined;
  readonly #pages: ListPages;

  constructor(
    shared: Shared,
    prepared: PreparedOperation,
    derived: DerivedList,
    field: SelectedField,
  ) {
    const { adapter, kind, parent } = derived;
    this.key = field.key;
    this.#shared = shared;
    this.#adapter = adapter;
    this.#argumentsFor = argumentsReader(shared, parent, field);
    this.#connection =
      kind === 'connection'
        ? new ConnectionShape(
            field,
            { ...adapter.connection!, pageInfo: shared.served.pageInfo },
            prepared.fragments,
          )
        : undefined;
    const args = field.uses[0]!.node.arguments;
    const places = this.#connection?.places ?? [selectionsBelow(field)];
    this.#pages = new ListPages(shared, prepared, { adapter, args, places });
  }

  /** Answers a field of the root. */
  answer(call: Call): Promise<FieldValue> {
    return this.#answer(call, [this.key]);
  }

  answerBelow(requester: Requester, parentId: unknown): Promise<FieldValue> {
    return this.#answer(requester, [], { id: parentId });
  }

  /** @param path of the field @param parent of a nested list */
  async #answer(requester: Requester, path: Path, parent?: Reading['parent']): Promise<FieldValue> {
    const errors: AnswerError[] = [];
    try {
      const list = this.#open(requester, parent);
      const value = this.#connection
        ? await this.#readConnection(list, requester, path, errors)
        : await this.#collect(this.#drain(list, requester), path, errors, requester);
      return { value, errors };
    } catch (error) {
      return { value: null, errors: [...errors, ...errorsAt(error, path)] };
    }
  }

  /** Drains a list of the root, with the text of each page and its errors, for a stream. */
  async *parts(call: Call): AsyncGenerator<DrainedPart, void, undefined> {
    const list = this.#open(call);
    let drained = 0;
    for await (const page of this.#drain(list, call, { isStream: true })) {
      const { offsets } = page;
      if (offsets.length === 0) continue;
      const from = drained;
      drained += offsets.length;
      yield {
        count: offsets.length,
        text: this.#shared.textOf(page),
        errors: errorsIn(page, [this.key], from),
        resumeAfter: cursorAt(list.nameInCursors, endOf(page)!),
      };
    }
  }

  /** @param parent of a nested list @throws BAD_USER_INPUT */
  #open(requester: Requester, parent?: Reading['parent']): OpenedList {
    const { variables } = requester;
    const args = this.#argumentsFor(variables.values);
    const filters = this.#adapter.filters
      .map(({ name, defaultValue }) => [name, args[name], defaultValue] as const)
      .filter(([, value, byDefault]) => !isDeepStrictEqual(value, byDefault));
    const { parent: type, name } = this.#adapter;
    const list = parent ? `${type}.${name}(${JSON.stringify(parent.id ?? null)})` : name;
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
  #drain(
    list: OpenedList,
    requester: Requester,
    { isStream = false } = {},
  ): WalkedPages<ListRecord> {
    const { limit, position } = this.#bounds(list);
    const { signal, caller, operation, drainBudget } = requester;
    const selection = this.#pages.nameWith(requester.variables.sent);
    const pages = list.parent
      ? walkBehind(this.#pages.listFor(requester, list), position, limit)
      : walkTogether(this.#shared.lists, {
          name: isStream ? undefined : JSON.stringify([list.name, selection, position, limit]),
          listFor: (readers) =>
            this.#pages.listFor(this.#shared.walkRequester(requester, readers), list),
          position,
          limit,
          caller,
          operation,
          // Walks have no budget of their own, and lists of the root are not below one.
          budget: requester.budget!,
          signal,
        });
    const toCursor = (at: Position) => cursorAt(list.nameInCursors, at);
    return drain(pages, { limit, budget: drainBudget, signal, toCursor });
  }

  /** @throws BAD_USER_INPUT, CURSOR_INVALID */
  #bounds({ nameInCursors, args }: OpenedList) {
    const limit = args['limit'] as number | null | undefined;
    if (typeof limit === 'number' && limit < 0) {
      throw codedError('BAD_USER_INPUT', `\`limit\` must not be negative, but it is ${limit}.`);
    }
    const position = decodeCursor(nameInCursors, args['after'] as string | null | undefined);
    return { limit: limit ?? undefined, position };
  }

  async #collect(
    pages: WalkedPages<ListRecord>,
    path: Path,
    errors: AnswerError[],
    requester: Requester,
  ): Promise<JsonText> {
    const parts: Buffer[] = [];
    let drained = 0;
    for await (const page of pages) {
      if (page.offsets.length === 0) continue;
      const text = this.#shared.textOf(page);
      requester.hold(text, text.length);
      requester.onDrained?.(text);
      parts.push(text);
      errors.push(...errorsIn(page, path, drained));
      drained += page.offsets.length;
    }
    return JsonText.ofList(parts);
  }

  async #readConnection(
    list: OpenedList,
    requester: Requester,
    path: Path,
    errors: AnswerError[],
  ): Promise<JsonText> {
    const shape = this.#connection!;
    const { values } = requester.variables;
    const { isRead, hasTotal } = shape.needs(values);
    const args: ConnectionArguments = list.args;
    const { slots } = this.#shared.lists;
    const { caller, operation, signal } = requester;
    const isBackward = args.last !== undefined && args.last !== null;
    // Without records, the fields of one that fails are no reason for an error.
    const pages = args.first === 0 || args.last === 0 ? this.#pages.bare : this.#pages;
    const connected: ConnectedList<ListRecord> = {
      // The pages in front of the last records are not in the answer.
      ...pages.listFor(requester, { ...list, isOverhead: isBackward }),
      nameInCursors: list.nameInCursors,
      max: this.#shared.connectionMax,
      inTurn: (begin) => walkInTurn(slots, { caller, operation, signal }, begin),
    };
    // Also where only `totalCount` is selected.
    checkedArguments(connected, args);
    const [connection, total] = await Promise.all([
      isRead ? readConnection(connected, args) : NOTHING,
      hasTotal ? this.#total(list, requester) : undefined,
    ]);
    if (isBackward) {
      // Pages of overhead have charged the caller, but have not checked the scope `drain` for what is returned.
      const returned = Math.ceil(connection.edges.length / LARGEST_PAGE);
      requester.budget?.spend(returned, { isCharged: true });
    }
    if (total && 'error' in total) {
      for (const key of shape.totalKeys(values))
        errors.push(...errorsAt(total.error, [...path, key]));
    }
    const count = total && 'count' in total ? total.count : null;
    const text = shape.write({ ...connection, total: { count } }, values, path, errors);
    requester.hold(connection, text.length);
    return JsonText.of(text);
  }

  async #total(list: OpenedList, requester: Requester): Promise<Total> {
    try {
      if (this.#adapter.count !== undefined) {
        const { count } = await this.#pages.bare.listFor(requester, list).fetchPage(null, 1);
        if (count !== undefined) return { count };
      }
      return { count: await this.#counted(list, requester) };
    } catch (error) {
      return { error: causeOf(error) };
    }
  }

  async #counted(list: OpenedList, requester: Requester): Promise<number> {
    const { totals, slots } = this.#shared.lists;
    const { bare } = this.#pages;
    const known = totals.of(list.name, (signal) => {
      const gateway = this.#shared.gatewayRequester(requester.variables, signal);
      const walk = () => walkList(bare.listFor(gateway, list), { after: null });
      return walkInTurn(slots, { caller: gateway.caller, operation: gateway, signal }, walk);
    });
    if (known !== undefined) return known;
    let count = 0;
    const { signal, caller, operation, drainBudget } = requester;
    const listFor = (by: Requester) => bare.listFor(by, list);
    const pages = requester.budget
      ? walkTogether(this.#shared.lists, {
          name: JSON.stringify([list.name, 'total']),
          listFor: (readers) => listFor(this.#shared.walkRequester(requester, readers)),
          position: null,
          limit: undefined,
          caller,
          operation,
          budget: requester.budget.forOverhead,
          signal,
        })
      : walkList(listFor(requester), { after: null });
    for await (const { offsets } of pages) {
      count += offsets.length;
      if (count > drainBudget.max) throw limitExceeded(drainBudget.max);
    }
    return count;
  }
}

const NOTHING = { edges: [], hasNextPage: false, hasPreviousPage: false };

type Total = { readonly count: number } | { readonly error: unknown };

/** A list with the arguments of one call. */
interface OpenedList extends Reading {
  /** The same in its cursors, where a filter that is null counts as absent. */
  readonly nameInCursors: string;
  readonly args: Values;
}

interface DrainedPart {
  readonly count: number;
  /** The records as JSON, with commas between them. */
  readonly text: Buffer;
  readonly errors: readonly AnswerError[];
  /** The cursor of the last record: a caller whose connection breaks goes on behind it. */
  readonly resumeAfter: string;
}

/** @param path of the list @param from the index of the page's first record in it */
function errorsIn(
  { page, offsets }: WalkedPage<ListRecord>,
  path: Path,
  from: number,
): readonly AnswerError[] {
  const errors: AnswerError[] = [];
  for (const [at, offset] of offsets.entries()) {
    for (const { error, place, path: below } of page.records[offset]!.errors) {
      errors.push(withPath(error, place === undefined ? path : [...path, from + at, ...below]));
    }
  }
  return errors;
}

function cursorAt(list: string, { after, end, size, offset, id }: Position): string {
  return cursorsOf(list, { after, end, size })(offset, id);
}

type Filter = readonly [name: string, value: unknown, byDefault: unknown];

function nameOf(list: string, filters: readonly Filter[]): string {
  if (filters.length === 0) return list;
  const chosen = JSON.stringify(filters.map(([name, value]) => [name, value]));
  return `${list}#${hash('sha256', chosen, 'base64url').slice(0, 16)}`;
}
