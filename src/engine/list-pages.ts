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
import type { Asked, Requester } from './call.ts';
import { ByIds, loadTogether } from './by-ids.ts';
import type { Shared } from './shared.ts';
import { identityOf, type Identity } from './identity.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import type { ListRecord, RecordError } from './list-record.ts';
import { compileMend, mended, type Mend } from './mend.ts';
import { asQuery, type PreparedOperation } from './prepared-operation.ts';
import { ResultUnion } from './result-union.ts';
import { selectedFields } from './selected-fields.ts';
import {
  failedForSize,
  isTooBig,
  readServiceAnswer,
  rootValue,
  ServiceFailure,
  valueBelow,
  type PlacedValue,
  type ServiceAnswer,
} from './service-answer.ts';
import { ServiceRequest } from './service-request.ts';
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
  /** The parent of a nested list, with the id that the service returned. */
  readonly parent?: { readonly id: unknown } | undefined;
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
  readonly #request: (parents: number) => ServiceRequest;
  /** The number of these pages, if there are lists below the records: what is sent for the pages does not name these. */
  readonly #filled: number | undefined;
  /** Undefined for a list of the root. */
  readonly #parents: ByIds | undefined;

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
      return compileMend(shared, prepared, adapter.nodeType, fields);
    });
    if (this.#mends.some((mend) => mend?.fills)) this.#filled = shared.number();
    const lists = places.map((selections, place) =>
      fieldNode('items', {
        alias: this.#keys[place],
        selections: orTypename([...(place === 0 ? this.#identity.selections : []), ...selections]),
      }),
    );
    const info = fieldNode('pageInfo', {
      selections: ['hasNextPage', 'endCursor', ...sizeFields(adapter)].map((name) =>
        fieldNode(name),
      ),
    });
    const { count } = adapter;
    const counted = isBare && count !== undefined ? [fieldNode(count, { alias: COUNT })] : [];
    const filters = new Set(adapter.filters.map(({ name }) => name));
    const sentArgs = args.filter(({ name }) => filters.has(name.value));
    const paging = [
      argumentNode(adapter.first.name, FIRST),
      argumentNode(adapter.after.name, AFTER),
    ];
    const list = fieldNode(adapter.name, {
      args: [...paging, ...sentArgs],
      selections: this.#result.select([info, ...counted, ...lists]),
    });
    const query = asQuery(prepared);
    const definitions = [
      variableDefinitionNode(FIRST, adapter.first.type),
      // It may have a default, and is left out for the first page.
      variableDefinitionNode(AFTER, getNullableType(adapter.after.type)),
    ];
    this.#parents = adapter.reach && new ByIds(shared, query, adapter.reach, [list], definitions);
    const ofRoot =
      this.#parents?.request(1) ?? new ServiceRequest(shared.served, query, [list], definitions);
    this.#request = (parents) => this.#parents?.request(parents) ?? ofRoot;
    const texts = places.map((selections) => print({ kind: Kind.SELECTION_SET, selections }));
    this.#name = `${adapter.parent}.${adapter.name} ${texts.join(' ')}`;
  }

  get bare(): ListPages {
    return (this.#bare ??= this.#makeBare());
  }

  /** Names what is selected, also in lists below the records, with the values of the caller's variables. */
  nameWith(sent: Readonly<Record<string, unknown>>): string {
    const name = this.#request(1).nameWith(sent);
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

  /** The first pages of the nested lists of several parents share a request. */
  #fetcher(requester: Requester, { parent, isOverhead }: Reading): FetchPage<ListRecord> {
    const fullPages = inFullPages();
    const parents = parent ? [JSON.stringify(parent.id ?? null)] : [];
    return async (after, first) => {
      if (parents[0] !== undefined && after === null) {
        const name = `${first} ${this.nameWith(requester.variables.sent)}`;
        const loader = requester.loader<Page<ListRecord>>(name, (ids) =>
          this.#firstPages(requester, { first, isOverhead }, ids),
        );
        return loader.load(parents[0]);
      }
      const pages = fullPages(first) * this.#request(1).pages;
      const asked = { after, first, parents, pages, isOverhead };
      return this.#pageOf(requester, await this.#ask(requester, asked), 0, asked);
    };
  }

  #firstPages(
    requester: Requester,
    asked: { readonly first: number; readonly isOverhead: boolean | undefined },
    ids: readonly string[],
  ): Promise<readonly (Page<ListRecord> | Error)[]> {
    const first = { after: null, ...asked };
    return loadTogether(
      ids,
      (parents) => this.#request(parents).pages,
      (parents, pages) => this.#ask(requester, { ...first, parents, pages }),
      (answer, at) => this.#pageOf(requester, answer, at, first),
    );
  }

  /** @throws SizeRefusedError, PageFailedError */
  async #ask(
    requester: Requester,
    { after, first, parents, pages, ...asked }: RequestedPage,
  ): Promise<ServiceAnswer> {
    const request = this.#request(Math.max(1, parents.length));
    const added: JsonObject = { [FIRST]: first, ...this.#parents?.values(parents) };
    if (after !== null) added[AFTER] = after;
    const outgoing = request.with(requester.variables.sent, added);
    const answered = await requester.ask(outgoing, pages, asked).catch((error: unknown) => {
      throw pageError(error);
    });
    this.#shared.telemetry.pageRead(requester.cause);
    const answer = readServiceAnswer(answered);
    if (isTooBig(answer)) {
      const cause = new ServiceFailure(answer.errors);
      throw new SizeRefusedError(cause.message, { cause });
    }
    return answer;
  }

  /** @throws PageFailedError if the parent does not exist any more */
  #listIn(answer: ServiceAnswer, at: number): PlacedValue {
    const { name, parent } = this.#adapter;
    if (!this.#parents) return rootValue(answer, name);
    const { failure, ...placed } = this.#parents.read(answer, at);
    if (failure) return { value: null, errors: [{ error: failure, path: [] }] };
    if (isJsonObject(placed.value) || placed.errors.length > 0) return valueBelow(placed, name);
    const message = `The recruiting service no longer has this ${parent}, so its list cannot be read. Request its parent again.`;
    throw new PageFailedError(message, { cause: codedError('UPSTREAM_BAD_RESPONSE', message) });
  }

  /** @param at the index of the parent in the request @throws PageFailedError, CursorRefusedError */
  async #pageOf(
    requester: Requester,
    answer: ServiceAnswer,
    at: number,
    { after, first }: { readonly after: string | null; readonly first: number },
  ): Promise<Page<ListRecord>> {
    const placed = this.#listIn(answer, at);
    const failure = this.#result.failureIn(placed.value);
    const page = isJsonObject(placed.value) && !failure ? placed.value : {};
    const errors = failure ? [failure] : placed.errors.map(({ error }) => error);
    // Without an error, no items are no records.
    const isNullList = (list: unknown) =>
      list === null && errors.length === 0 && isNullableType(this.#adapter.itemsType);
    const lists = this.#keys.map((key) => (isNullList(page[key]) ? [] : page[key]));
    const { pageInfo } = page;
    const isPage = lists.every(Array.isArray) && isJsonObject(pageInfo);
    // Errors without a record of their own travel with the first one: without records they would be lost.
    if (!isPage || (errors.length > 0 && lists[0]!.length === 0)) {
      if (errors.length === 0) throw noPage();
      const cause = new ServiceFailure(errors);
      const isInside = !failure && placed.errors.some(({ path }) => path.length > 0);
      // What the service does not execute at all is wrong for every page; a record that fails says nothing of cursors.
      if (isPage || after === null || answer.data === undefined || isInside) {
        throw new PageFailedError(cause.message, { cause });
      }
      throw new CursorRefusedError(cause.message, { cause });
    }
    const { hasNextPage, endCursor, first: size } = pageInfo;
    // Null says no; taken for a no, anything else would cut the list short.
    if (hasNextPage !== null && typeof hasNextPage !== 'boolean') throw noPage();
    const ids = (lists[0] as unknown[]).map((record) => this.#identity.of(record));
    const records = await this.#recordsOf(requester, lists as unknown[][], placed.errors);
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
    const errors: RecordError[][] = [];
    const add = (index: number, error: RecordError) => void (errors[index] ??= []).push(error);
    for (const { error, path } of placed) {
      const [key, index, ...rest] = path;
      const place = this.#keys.indexOf(String(key));
      const isOfRecord = typeof index === 'number' && lists[place]?.[index] !== undefined;
      if (isOfRecord) add(index, { error: { service: error }, place, path: rest });
      else add(0, { error: { service: error }, place: undefined, path: [] });
    }
    for (const [place, mending] of this.#mends.entries()) {
      if (!mending) continue;
      const inside = await mended(mending, lists[place], requester);
      for (const { error, path } of inside) {
        const [index, ...rest] = path;
        add(index as number, { error, place, path: rest });
      }
    }
    return lists[0]!.map((_, index) => ({
      texts: lists.map((records) => JSON.stringify(records[index] ?? null)),
      errors: errors[index] ?? NO_ERRORS,
    }));
  }
}

interface RequestedPage extends Asked {
  readonly after: string | null;
  readonly first: number;
  /** The ids of the parents of nested lists. */
  readonly parents: readonly string[];
  /** The cost of the request. */
  readonly pages: number;
}

/** The pages of one reading cost what their records cost in full pages, however small the service makes them. */
function inFullPages(): (first: number) => number {
  let requested = 0;
  return (first) => {
    const before = Math.ceil(requested / LARGEST_PAGE);
    requested += first;
    return Math.ceil(requested / LARGEST_PAGE) - before;
  };
}

const NO_ERRORS: readonly RecordError[] = [];

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
