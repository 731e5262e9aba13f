import { GraphQLError, isNullableType } from 'graphql';
import { codedError } from '../../errors.ts';
import type { FetchPage } from '../../paging/page.ts';
import { unlessAborted } from '../../paging/unless-aborted.ts';
import { questionFor } from './ask-upstream.ts';
import { aliasesOf, pageSizeOf, questionOf, type PageSelection } from './page-question.ts';
import { readPage, type UpstreamRecord } from './read-page.ts';
import type { AskingContext } from './asking-context.ts';
import type { UpstreamError, UpstreamValue } from './upstream-value.ts';

export interface PageSource extends PageSelection {
  /** Asks another way than at the root. */
  readonly askFor?: typeof questionFor;
  /** The first page, where it is here already. */
  readonly ridden?: RiddenPage | undefined;
}

/** A page that came along with another answer. */
export interface RiddenPage {
  readonly answer: UpstreamValue;
  /** The names of its lists of records, in the order of the selections. */
  readonly aliases: readonly string[];
}

/** What the upstream said in place of a page. */
export class PageFailure extends GraphQLError {
  override name = 'PageFailure';
  /** What else it said. */
  readonly others: readonly UpstreamError[];
  constructor([first, ...others]: readonly UpstreamError[]) {
    super(first!.message, { extensions: first!.extensions });
    this.others = others;
  }
}

/** The upstream gave null for the whole list, as its type may allow: then what is derived is null too. */
export class NullList extends Error {
  override name = 'NullList';
}

/** What the upstream said beyond the error that is thrown. */
export function surplusOf(error: unknown): readonly UpstreamError[] {
  if (error instanceof PageFailure) return error.others;
  return error instanceof Error && error.cause instanceof PageFailure ? error.cause.others : [];
}

export function nullForNullList(error: unknown): null {
  if (error instanceof NullList) return null;
  throw error;
}

/** The pages of a list, with the caller's own selection on each record. The request is made once. */
export function pageFetcher(
  source: PageSource & { context: AskingContext },
): FetchPage<UpstreamRecord> {
  const { link, adapter, identity, context, filters, askFor = questionFor } = source;
  const question = questionOf(source);
  const pageSize = pageSizeOf(adapter);
  const isNullable = {
    page: isNullableType(adapter.field.type),
    items: isNullableType(adapter.itemsType),
  };
  const ask = askFor(link, question);
  let { ridden } = source;

  return async ({ first, after }, signal) => {
    // A variable that is left out leaves its argument out, so the upstream's own default applies.
    const size = first ?? pageSize;
    const paging = { ...(size !== undefined && { first: size }), ...(after !== null && { after }) };
    const ours = Object.entries({ ...filters, ...paging });
    const variables = {
      ...question.variables,
      ...Object.fromEntries(ours.map(([name, value]) => [`_rs_${name}`, value])),
    };
    // Before asking: a request that nobody waits for any more would fail with nobody to hear of it.
    signal.throwIfAborted();
    const came = after === null ? ridden : undefined;
    if (came) ridden = undefined;
    const answer = came?.answer ?? (await unlessAborted(ask(variables, context), signal));
    if (!came) link.watch.pageRead(context.cause);
    // A list that its type allows to be null, and that is so for no stated reason, holds nothing.
    const ifNull = isNullable.items && answer.errors.length === 0 ? [] : undefined;
    const { page, beside } = readPage(answer, came?.aliases ?? aliasesOf(source), identity, ifNull);
    if (page) return { ...page, beside };
    if (beside.length > 0) throw new PageFailure(beside);
    throw isNullable.page && answer.value === null && after === null ? new NullList() : noPage();
  };
}

function noPage(): GraphQLError {
  return codedError(
    'UPSTREAM_BAD_RESPONSE',
    'The recruiting service gave a page without items or pageInfo. Try again later.',
  );
}
