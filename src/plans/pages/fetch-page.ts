import { GraphQLError } from 'graphql';
import type { AnswerError, Path, UpstreamError } from '../../answers/answer-errors.ts';
import { codedError } from '../../errors.ts';
import { sizeOf, type FetchPage, type Identified, type Page } from '../../paging/page.ts';
import type { Adapter } from '../../schema/derived.ts';
import type { Requester, CallVariables } from '../call.ts';
import { ScannedPage, type ListRecord } from '../output.ts';
import {
  repeated,
  type Accepted,
  type AcceptedSizes,
  type Attempt,
} from '../requests/accepted-sizes.ts';
import { requestSparingParents, type PagesToInline } from '../requests/request-text.ts';
import type { ReadingTelemetry } from '../telemetry.ts';
import { pageSizeOf, type PageRequests } from './page-request.ts';
import type { PageAnswer } from './read-page.ts';

/** One list as a call reads it. */
export interface PageSource {
  readonly adapter: Adapter;
  readonly requests: PageRequests;
  readonly variables: CallVariables;
  readonly telemetry: ReadingTelemetry;
  readonly sizes: AcceptedSizes;
  /** As JSON, for a nested list that is reached by its parent's id. */
  readonly parentId?: string | undefined;
  /** The first page, if the request for the parent had it inlined. */
  readonly inlinedPage?: PageAnswer | undefined;
  /** Returned for every further page where none can be requested. */
  readonly unreachable?: PageAnswer | undefined;
}

/** The errors that the service returned instead of a page. */
export class PageFailure extends GraphQLError {
  override name = 'PageFailure';
  readonly errors: readonly UpstreamError[];
  constructor(errors: readonly UpstreamError[]) {
    const { message, code, result } = errors[0]!;
    super(message, {
      extensions: { code, ...(result !== undefined && { result: JSON.parse(result) as unknown }) },
    });
    this.errors = errors;
  }
}

/** The service returned null for the whole list, as its type allows: then the derived field is null too. */
export class NullList extends Error {
  override name = 'NullList';
}

/** Makes a function that fetches the pages of a list. Other operations may share the pages. */
export function pageFetcher(
  {
    adapter,
    requests,
    variables,
    telemetry,
    sizes,
    parentId,
    inlinedPage,
    unreachable,
  }: PageSource,
  requester: Requester,
): FetchPage<ListRecord> {
  const pageSize = pageSizeOf(adapter);
  const { sized } = requests;
  let inlined = inlinedPage;
  return async ({ first, after }, signal) => {
    // Nobody would wait for the request any more, so its failure would be an unhandled rejection.
    signal.throwIfAborted();
    let answer = after === null ? inlined : undefined;
    if (answer) {
      inlined = undefined;
      const { page: begin = Infinity } = adapter;
      if (begin < (first ?? Infinity)) {
        return partOf({ answer, records: begin, isPart: true }, after);
      }
    } else if (unreachable) answer = unreachable;
    else {
      const send = ({ records, pages: wanted, isPart, isRepeated, trialMs }: Attempt) => {
        // Leaving out a variable leaves out its argument, so the upstream's default applies.
        const page = { first: records, after, parentId, isPart };
        const write = (pages: PagesToInline) => {
          const request = requests.request(variables, page, pages);
          return isRepeated ? repeated(request, trialMs) : request;
        };
        return requestSparingParents(requester, write, wanted);
      };
      const accepted = await unlessAborted(sizes.request(sized, first ?? pageSize, send), signal);
      telemetry.pageRead(requester.cause);
      if (accepted.isPart) return partOf(accepted, after);
      ({ answer } = accepted);
    }
    return pageIn(answer, after);
  };

  /** A page that has fewer records than requested, but as many as that: the service's own limit may be smaller. */
  function partOf(
    { answer, records = 0 }: Accepted<PageAnswer>,
    after: string | null,
  ): Page<ListRecord> {
    const page = pageIn(answer, after);
    // Without a word of the service, a page that lacks a few records says nothing.
    const isCut = page.hasNextPage && 2 * sizeOf(page) < records;
    const limit = page.limit ?? (isCut ? sizeOf(page) : records);
    if (limit < records) {
      sizes.exceedsLimit(sized);
      return page;
    }
    return page instanceof ScannedPage
      ? page.asPart()
      : { ...page, limit: undefined, isPart: true };
  }
}

/** Waits for a promise that others may wait for too. @throws the reason of the signal, as soon as it is aborted */
function unlessAborted<T>(awaited: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason as Error);
    signal.addEventListener('abort', leave);
    const settle = (deliver: (outcome: T) => void) => (outcome: T) => {
      signal.removeEventListener('abort', leave);
      deliver(outcome);
    };
    awaited.then(settle(resolve), settle(reject));
  });
}

function pageIn({ page, errors, isNull }: PageAnswer, after: string | null): Page<ListRecord> {
  if (page) return page;
  if (errors.length > 0) throw new PageFailure(errors);
  throw isNull && after === null ? new NullList() : noPage();
}

/**
 * Gives records that are null because a field of theirs failed the identity that they have all the same: for their
 * cursors. Their pages are requested once more for that; a page that was read is given even if that fails.
 */
export function namingFailed(
  fetchPage: FetchPage<ListRecord>,
  fetchIdentities: FetchPage<Identified>,
): FetchPage<ListRecord> {
  return async (request, signal) => {
    const page = await fetchPage(request, signal);
    if (page instanceof ScannedPage || !page.items.some(hasFailed)) return page;
    const named = await fetchIdentities(request, signal).catch(() => undefined);
    signal.throwIfAborted();
    // The list may have changed.
    const isSame = page.items.every(
      ({ identity }, at) => identity === null || identity === named?.items[at]?.identity,
    );
    if (!named || !isSame) return page;
    const items = page.items.map((record, at) =>
      hasFailed(record) ? { ...record, identity: named.items[at]?.identity ?? null } : record,
    );
    const { identities: _, ...facts } = page;
    return { ...facts, items };
  };
}

function hasFailed({ identity, page, index }: ListRecord): boolean {
  if (identity !== null || page.kind === 'bytes') return false;
  return page.readings.some((readings) => readings[index]!.errors.length > 0);
}

/** The errors of a list that could not be read; none where the service returned null for it. */
export function errorsOfList(error: unknown, path: Path): AnswerError[] {
  if (error instanceof NullList) return [];
  if (error instanceof PageFailure) return error.errors.map((each) => ({ ...each, path }));
  const cause = error instanceof Error ? error.cause : undefined;
  const others = cause instanceof PageFailure ? cause.errors.slice(1) : [];
  return [{ thrown: error, path }, ...others.map((each) => ({ ...each, path }))];
}

function noPage(): GraphQLError {
  return codedError(
    'UPSTREAM_BAD_RESPONSE',
    'The recruiting service returned a page without items or pageInfo. Try again later.',
  );
}
