import { getNullableType, Kind, print, type ArgumentNode, type SelectionNode } from 'graphql';
import { codeOf } from '../errors.ts';
import { PageFailedError, SizeRefusedError, type FetchPage, type Page } from '../paging/page.ts';
import type { PagedList } from '../paging/walk.ts';
import { LARGEST_PAGE, type Adapter } from '../schema/derived.ts';
import type { OutgoingRequest } from '../upstream/request.ts';
import { compileByIds } from './by-ids.ts';
import type { Call } from './call.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import { badPage, failedBy, pageReader } from './page-reader.ts';
import type { PageRecords } from './page-records.ts';
import { asQuery, type PreparedOperation } from './prepared-operation.ts';
import {
  failedForSize,
  isTooBig,
  memberOf,
  readServiceAnswer,
  type PlacedValue,
} from './service-answer.ts';
import { serviceRequest } from './service-request.ts';
import type { Shared } from './shared.ts';
import { argumentNode, fieldNode, variableDefinitionNode } from './syntax.ts';

/** Requests and reads the pages of a list with what an operation selects of its records. */
export interface ListPages {
  /** The same list without places. */
  readonly bare: ListPages;
  /** Names what is selected, also in lists below the records, with the values of the caller's variables. */
  nameWith(sent: JsonObject): string;
  /** The list as walks read it in a call. */
  listFor(call: Call, reading: Reading): PagedList<PageRecords>;
}

/** How a list is read. */
export interface Reading {
  /** Of the list with its filters. */
  readonly name: string;
  /** Of a nested list: the id of its parent as JSON. */
  readonly parent?: string | undefined;
}

const FIRST = '_rs_first';
const AFTER = '_rs_after';

/** @param places as `pageReader` takes them @param args as the caller wrote them: only filters are sent */
export function listPages(
  shared: Shared,
  prepared: PreparedOperation,
  adapter: Adapter,
  places: readonly (readonly SelectionNode[])[],
  args: readonly ArgumentNode[] = [],
): ListPages {
  const { name, first, after, filters, reach } = adapter;
  const reader = pageReader(shared, prepared, adapter, places);
  const isFilter = (arg: ArgumentNode) => filters.some((filter) => filter.name === arg.name.value);
  const list = fieldNode(name, {
    args: [
      argumentNode(first.name, FIRST),
      argumentNode(after.name, AFTER),
      ...args.filter(isFilter),
    ],
    selections: reader.selections,
  });
  const query = asQuery(prepared);
  const definitions = [
    variableDefinitionNode(FIRST, first.type),
    // It may have a default, and is left out for the first page.
    variableDefinitionNode(AFTER, getNullableType(after.type)),
  ];
  const parents = reach && compileByIds(shared, query, reach, [list], definitions);
  /** Of the list of the root, or of one parent. */
  const request = parents?.request(1) ?? serviceRequest(shared.served, query, [list], definitions);
  /** Names the list and the selection, for what the service refuses as too big. */
  const texts = places.map((selections) => print({ kind: Kind.SELECTION_SET, selections }));
  const nameOfSize = `${adapter.parent}.${name} ${texts.join(' ')}`;

  const fetcher = (call: Call, { parent }: Reading): FetchPage<PageRecords> => {
    const { sent } = call.variables;
    let requested = 0;
    return async (cursor, size) => {
      // The pages of one reading cost what their records cost in full pages, however small the service makes them.
      const before = Math.ceil(requested / LARGEST_PAGE);
      requested += size;
      const full = Math.ceil(requested / LARGEST_PAGE) - before;
      const added = { [FIRST]: size, ...(cursor !== null && { [AFTER]: cursor }) };
      const askFor = (outgoing: OutgoingRequest, pages: number) =>
        ask(shared, call, outgoing, full * pages);
      const read = (page: PlacedValue) => reader.read(call, page, cursor, size);
      if (parent === undefined) {
        const data = await askFor(request.outgoing(sent, added), request.pages);
        return read(memberOf(data, name));
      }
      const load = (ids: readonly string[]) =>
        parents!.load(ids, { sent, added, ask: askFor, read: (of) => read(listOf(adapter, of)) });
      // The first pages of the nested lists of several parents share a request.
      if (cursor === null) {
        return call
          .loader<Page<PageRecords>>(`${size} ${request.nameWith(sent)}`, load)
          .load(parent);
      }
      const [page] = await load([parent]);
      if (page instanceof Error) throw page;
      return page!;
    };
  };

  let bare: ListPages | undefined;
  return {
    get bare() {
      return (bare ??= listPages(shared, prepared, adapter, [], args));
    },
    nameWith: request.nameWith,
    listFor: (call, reading) => {
      const { known, sizeOf, concurrency } = shared.lists;
      return {
        name: reading.name,
        fetchPage: fetcher(call, reading),
        known,
        size: sizeOf(nameOfSize, adapter.page),
        concurrency,
      };
    },
  };
}

/** @returns the data of the answer @throws SizeRefusedError, PageFailedError */
async function ask(
  { telemetry }: Shared,
  call: Call,
  outgoing: OutgoingRequest,
  pages: number,
): Promise<PlacedValue> {
  const answered = await call.ask(outgoing, pages).catch((error: unknown) => {
    throw pageError(error);
  });
  telemetry.pageRead(call.origin.cause);
  const answer = readServiceAnswer(answered);
  const { data, errors } = answer;
  if (!isTooBig(answer) && data !== undefined) return { value: data, errors };
  // What the service does not execute at all is wrong for every page.
  throw failedBy(isTooBig(answer) ? SizeRefusedError : PageFailedError, errors);
}

/** Errors of the service end a walk; a refusal of the gateway, such as a budget that is used up, stays what it is. */
function pageError(error: unknown): unknown {
  if (failedForSize(error)) return new SizeRefusedError('', { cause: error });
  const code = codeOf(error);
  const isOfService = typeof code === 'string' && /^(?:UPSTREAM|TOKENS)_/.test(code);
  return isOfService ? new PageFailedError('', { cause: error }) : error;
}

/** @throws PageFailedError if the parent does not exist any more */
function listOf({ parent: type, name }: Adapter, parent: PlacedValue): PlacedValue {
  if (isJsonObject(parent.value) || parent.errors.length > 0) return memberOf(parent, name);
  throw badPage(
    `The recruiting service no longer has this ${type}, so its list cannot be read. Request its parent again.`,
  );
}
