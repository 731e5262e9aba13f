import { GraphQLError } from 'graphql';
import type { AnswerError, Path, UpstreamError } from '../answers/errors.ts';
import { codedError } from '../errors.ts';
import type { FetchPage } from '../paging/page.ts';
import { unlessAborted } from '../paging/unless-aborted.ts';
import type { Adapter } from '../schema/derived.ts';
import type { Asking, CallVariables } from './call.ts';
import type { ListRecord } from './list-record.ts';
import { pageSizeOf, type PageText } from './page-text.ts';
import type { PageAnswer } from './read-page.ts';
import type { ReadingWatch } from './reading-watch.ts';
import { askSparingParents } from './sparing-parents.ts';

/** One list as a call asks for it. */
export interface PageSource {
  readonly adapter: Adapter;
  readonly text: PageText;
  readonly variables: CallVariables;
  readonly watch: ReadingWatch;
  /** Of the parent as JSON, for a nested list that is reached by it. */
  readonly parentId?: string | undefined;
  /** The first page, where it is here already. */
  readonly firstPage?: PageAnswer | undefined;
  /** In place of every further page, where none can be asked for. */
  readonly unreachable?: PageAnswer | undefined;
}

/** What the service said in place of a page. */
export class PageFailure extends GraphQLError {
  override name = 'PageFailure';
  readonly errors: readonly UpstreamError[];
  constructor(errors: readonly UpstreamError[]) {
    const [first] = errors;
    super(first!.message, { extensions: { code: first!.code } });
    this.errors = errors;
  }
}

/** The service gave null for the whole list, as its type may allow: then what is derived is null too. */
export class NullList extends Error {
  override name = 'NullList';
}

/** The pages of a list. What is read of them may be shared. */
export function pageFetcher(
  { adapter, text, variables, watch, parentId, firstPage, unreachable }: PageSource,
  asking: Asking,
): FetchPage<ListRecord> {
  const pageSize = pageSizeOf(adapter);
  let inlined = firstPage;
  return async ({ first, after }, signal) => {
    // A request that nobody waits for any more would fail with nobody to hear of it.
    signal.throwIfAborted();
    let answer = after === null ? inlined : undefined;
    if (answer) inlined = undefined;
    else if (unreachable) answer = unreachable;
    else {
      // A variable that is left out leaves its argument out, so the upstream's own default applies.
      const page = { first: first ?? pageSize, after, parentId };
      const asked = askSparingParents(asking, (wanted) => text.request(variables, page, wanted));
      answer = await unlessAborted(asked, signal);
      watch.pageRead(asking.cause);
    }
    const { page, errors, isNull } = answer;
    if (page) return page;
    if (errors.length > 0) throw new PageFailure(errors);
    throw isNull && after === null ? new NullList() : noPage();
  };
}

/** The errors of a list that could not be read: empty where it is null for no reason. */
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
    'The recruiting service gave a page without items or pageInfo. Try again later.',
  );
}
