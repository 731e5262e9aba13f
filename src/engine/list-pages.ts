import { randomUUID } from 'node:crypto';
import {
  getNamedType,
  getNullableType,
  GraphQLInt,
  isNullableType,
  Kind,
  print,
  type ArgumentNode,
  type GraphQLObjectType,
  type SelectionNode,
} from 'graphql';
import { codedError, codeOf } from '../errors.ts';
import {
  CursorRefusedError,
  PageFailedError,
  SizeRefusedError,
  type FetchPage,
  type Page,
} from '../paging/page.ts';
import type { PagedList } from '../paging/walk.ts';
import { LARGEST_PAGE, type Adapter } from '../schema/derived.ts';
import type { OutgoingRequest } from '../upstream/request.ts';
import type { AnswerError } from './answer.ts';
import { ByIds } from './by-ids.ts';
import type { Requester } from './call.ts';
import { identityOf, type Identity } from './identity.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import type { ListRecord } from './list-record.ts';
import { compileMend, mended, type Mend } from './mend.ts';
import { asQuery, type Parent, type PreparedOperation } from './prepared-operation.ts';
import { ResultUnion } from './result-union.ts';
import { selectedFields } from './selected-fields.ts';
import {
  failedForSize,
  isTooBig,
  memberOf,
  readServiceAnswer,
  ServiceFailure,
  type PlacedValue,
} from './service-answer.ts';
import { ServiceRequest } from './service-request.ts';
import type { Shared } from './shared.ts';
import { argumentNode, fieldNode, orTypename, variableDefinitionNode } from './syntax.ts';

interface ListPagesParts {
  readonly adapter: Adapter;
  /** As the caller wrote them. Only filters are sent. */
  readonly args?: readonly ArgumentNode[] | undefined;
  /**
   * What each place selects of a record. Without places, pages have only the identities of their records, and the number
   * of all records where adapters.json names it.
   */
  readonly places: readonly (readonly SelectionNode[])[];
}

/** How a list is read. */
export interface Reading {
  /** Of the list with its filters. */
  readonly name: string;
  /** Of a nested list. */
  readonly parent?: Parent | undefined;
  readonly isOverhead?: boolean;
}

const FIRST = '_rs_first';
const AFTER = '_rs_after';
const COUNT = '_rs_count';

/** Requests and reads the pages of a list with what an operation selects of its records. Compiled once. */
export class ListPages {
  /** The same list without places. */
  readonly #makeBare: () => ListPages;
  #bare: ListPages | undefined;
  /** Names the list and the selection, for what the service refuses as too big. */
  readonly #name: string;
  readonly #shared: Shared;
  readonly #adapter: Adapter;
  readonly #identity: Identity;
  readonly #keys: readonly string[];
  readonly #mends: readonly (Mend | undefined)[];
  readonly #result: ResultUnion;
  /** Names these pages, if there are lists below the records: what is sent for the pages does not name these. */
  readonly #filled: string | undefined;
  /** Undefined for a list of the root. */
  readonly #parents: ByIds | undefined;
  /** For a list of the root, or of one parent. */
  readonly #request: ServiceRequest;

  constructor(
    shared: Shared,
    prepared: PreparedOperation,
    { adapter, args = [], places: selected }: ListPagesParts,
  ) {
    const isBare = selected.length === 0;
    const places = isBare ? [[]] : selected;
    this.#makeBare = () => new ListPages(shared, prepared, { adapter, args, places: [] });
    this.#shared = shared;
    this.#adapter = adapter;
    this.#result = new ResultUnion(adapter.result, shared.served.upstreamType);
    this.#identity = identityOf(shared.schema, adapter, places[0] ?? []);
    this.#keys = places.map((_, place) => (place === 0 ? 'items' : `_rs_items${place}`));
    this.#mends = places.map((selections) => {
      const set = { kind: Kind.SELECTION_SET, selections } as const;
      const fields = selectedFields(set, prepared.fragments);
      return compileMend(shared, prepared, [adapter.nodeType], fields);
    });
    if (this.#mends.some((mend) => mend?.fills)) this.#filled = randomUUID();
    const lists = places.map((selections, place) =>
      fieldNode('items', {
        alias: this.#keys[place],
        selections: orTypename([...(place === 0 ? this.#identity.selections : []), ...selections]),
      }),
    );
    const info = ['hasNextPage', 'endCursor', ...sizeFields(adapter)];
    const selections = [
      fieldNode('pageInfo', { selections: info.map((name) => fieldNode(name)) }),
      ...(isBare && adapter.count !== undefined
        ? [fieldNode(adapter.count, { alias: COUNT })]
        : []),
      ...lists,
    ];
    const isFilter = ({ name }: ArgumentNode) =>
      adapter.filters.some((filter) => filter.name === name.value);
    const list = fieldNode(adapter.name, {
      args: [
        argumentNode(adapter.first.name, FIRST),
        argumentNode(adapter.after.name, AFTER),
        ...args.filter(isFilter),
      ],
      selections: this.#result.select(selections),
    });
    const query = asQuery(prepared);
    const definitions = [
      variableDefinitionNode(FIRST, adapter.first.type),
      // It may have a default, and is left out for the first page.
      variableDefinitionNode(AFTER, getNullableType(adapter.after.type)),
    ];
    this.#parents = adapter.reach && new ByIds(shared, query, adapter.reach, [list], definitions);
    this.#request =
      this.#parents?.request(1) ?? new ServiceRequest(shared.served, query, [list], definitions);
    const texts = places.map((each) => print({ kind: Kind.SELECTION_SET, selections: each }));
    this.#name = `${adapter.parent}.${adapter.name} ${texts.join(' ')}`;
  }

  get bare(): ListPages {
    return (this.#bare ??= this.#makeBare());
  }

  /** Names what is selected, also in lists below the records, with the values of the caller's variables. */
  nameWith(sent: Readonly<Record<string, unknown>>): string {
    const name = this.#request.nameWith(sent);
    return this.#filled === undefined ? name : JSON.stringify([name, this.#filled, sent]);
  }

  /** The list as walks read it on behalf of a requester. */
  listFor(requester: Requester, reading: Reading): PagedList<ListRecord> {
    const { indexes, sizes, concurrency, totals } = this.#shared.lists;
    return {
      name: reading.name,
      fetchPage: this.#fetcher(requester, reading),
      indexes,
      size: sizes.of(this.#name, this.#adapter.page),
      concurrency,
      totals,
    };
  }

  #fetcher(requester: Requester, { parent, isOverhead }: Reading): FetchPage<ListRecord> {
    const { sent } = requester.variables;
    const inFullPages = fullPages();
    return async (after, first) => {
      const full = inFullPages(first);
      const added: JsonObject =
        after === null ? { [FIRST]: first } : { [FIRST]: first, [AFTER]: after };
      const ask = (request: OutgoingRequest, pages: number) =>
        this.#ask(requester, request, full * pages, isOverhead);
      const read = (list: PlacedValue) => this.#pageOf(requester, list, after, first);
      if (!parent) {
        const answer = await ask(this.#request.with(sent, added), this.#request.pages);
        return read(memberOf(answer, this.#adapter.name));
      }
      const load = (ids: readonly string[]) =>
        this.#parents!.load(ids, { sent, added, ask, read: (of) => read(this.#listOf(of)) });
      const id = JSON.stringify(parent.id ?? null);
      // The first pages of the nested lists of several parents share a request.
      if (after === null) {
        const name = `${first} ${this.nameWith(sent)}`;
        return requester.loader<Page<ListRecord>>(name, load).load(id);
      }
      const [page] = await load([id]);
      if (page instanceof Error) throw page;
      return page!;
    };
  }

  /** @returns the data of the answer @throws SizeRefusedError, PageFailedError */
  async #ask(
    requester: Requester,
    request: OutgoingRequest,
    pages: number,
    isOverhead: boolean | undefined,
  ): Promise<PlacedValue> {
    const answered = await requester.ask(request, pages, isOverhead).catch((error: unknown) => {
      throw pageError(error);
    });
    this.#shared.telemetry.pageRead(requester.cause);
    const answer = readServiceAnswer(answered);
    const { data, errors } = answer;
    if (!isTooBig(answer) && data !== undefined) return { value: data, errors };
    // What the service does not execute at all is wrong for every page.
    throw failedBy(isTooBig(answer) ? SizeRefusedError : PageFailedError, errors);
  }

  /** @throws PageFailedError if the parent does not exist any more */
  #listOf(placed: PlacedValue): PlacedValue {
    const { name, parent } = this.#adapter;
    if (isJsonObject(placed.value) || placed.errors.length > 0) return memberOf(placed, name);
    const message = `The recruiting service no longer has this ${parent}, so its list cannot be read. Request its parent again.`;
    throw new PageFailedError(message, { cause: codedError('UPSTREAM_BAD_RESPONSE', message) });
  }

  /** @throws PageFailedError, CursorRefusedError */
  async #pageOf(
    requester: Requester,
    { value, errors: placed }: PlacedValue,
    after: string | null,
    first: number,
  ): Promise<Page<ListRecord>> {
    const failure = this.#result.failureIn(value);
    const page = isJsonObject(value) && !failure ? value : {};
    const errors = failure ? [{ service: failure, path: [] }] : placed;
    // Without an error, no items are no records.
    const isNullList = (list: unknown) =>
      list === null && errors.length === 0 && isNullableType(this.#adapter.itemsType);
    const lists = this.#keys.map((key) => (isNullList(page[key]) ? [] : page[key]));
    const { pageInfo } = page;
    const isPage = lists.every(Array.isArray) && isJsonObject(pageInfo);
    // Errors without a record of their own travel with the first one: without records they would be lost.
    if (!isPage || (errors.length > 0 && lists[0]!.length === 0)) {
      if (errors.length === 0) throw noPage();
      // A record that fails says nothing of the cursor.
      const isInside = errors.some(({ path }) => path !== undefined && path.length > 0);
      const isOfCursor = after !== null && !isPage && !isInside;
      throw failedBy(isOfCursor ? CursorRefusedError : PageFailedError, errors);
    }
    const { hasNextPage, endCursor, first: size } = pageInfo;
    // Null says no; taken for a no, anything else would cut the list short.
    if (hasNextPage !== null && typeof hasNextPage !== 'boolean') throw noPage();
    const ids = (lists[0] as unknown[]).map((record) => this.#identity.of(record));
    const records = await this.#recordsOf(requester, lists as unknown[][], errors);
    const count = page[COUNT];
    return {
      records,
      ...(typeof count === 'number' && count >= 0 && { count }),
      ids,
      hasNextPage: hasNextPage === true,
      endCursor: typeof endCursor === 'string' ? endCursor : null,
      size: typeof size === 'number' && size > 0 ? size : first,
    };
  }

  async #recordsOf(
    requester: Requester,
    lists: readonly (readonly unknown[])[],
    placed: PlacedValue['errors'],
  ): Promise<ListRecord[]> {
    const errors: AnswerError[][] = [];
    const add = (error: AnswerError, place: number) => {
      const [index, ...rest] = error.path ?? [];
      const isOfRecord = typeof index === 'number' && lists[place]?.[index] !== undefined;
      const path = isOfRecord ? [place, ...rest] : [];
      (errors[isOfRecord ? index : 0] ??= []).push({ ...error, path });
    };
    for (const error of placed) {
      const [key, ...path] = error.path ?? [];
      add({ ...error, path }, this.#keys.indexOf(String(key)));
    }
    for (const [place, mending] of this.#mends.entries()) {
      const inside = mending ? await mended(mending, lists[place], requester) : [];
      for (const error of inside) add(error, place);
    }
    return lists[0]!.map((_, index) => ({
      texts: lists.map((records) => JSON.stringify(records[index] ?? null)),
      errors: errors[index] ?? NO_ERRORS,
    }));
  }
}

/** The pages of one reading cost what their records cost in full pages, however small the service makes them. */
function fullPages(): (first: number) => number {
  let requested = 0;
  return (first) => {
    const before = Math.ceil(requested / LARGEST_PAGE);
    requested += first;
    return Math.ceil(requested / LARGEST_PAGE) - before;
  };
}

const NO_ERRORS: readonly AnswerError[] = [];

function failedBy(
  Failed: typeof PageFailedError | typeof SizeRefusedError | typeof CursorRefusedError,
  errors: PlacedValue['errors'],
): Error {
  const cause = new ServiceFailure(errors.map(({ service }) => service));
  return new Failed(cause.message, { cause });
}

/** Errors of the service end a walk; a refusal of the gateway, such as a budget that is used up, stays what it is. */
function pageError(error: unknown): unknown {
  if (failedForSize(error)) return new SizeRefusedError('', { cause: error });
  const code = codeOf(error);
  const isOfService = typeof code === 'string' && /^(?:UPSTREAM|TOKENS)_/.test(code);
  return isOfService ? new PageFailedError('', { cause: error }) : error;
}

function noPage(): PageFailedError {
  const cause = codedError(
    'UPSTREAM_BAD_RESPONSE',
    'The recruiting service returned a page without items or pageInfo. Try again later.',
  );
  return new PageFailedError(cause.message, { cause });
}

/** The field of `pageInfo` with the page size that the service used, if there is one. */
function sizeFields({ pageType }: Adapter): readonly string[] {
  const pageInfo = getNamedType(pageType.getFields()['pageInfo']!.type) as GraphQLObjectType;
  const first = pageInfo.getFields()['first'];
  return first && getNullableType(first.type) === GraphQLInt ? ['first'] : [];
}
