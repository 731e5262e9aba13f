import type { ExecutionRequest, ExecutionResult } from '@graphql-tools/utils';
import { hash } from 'node:crypto';
import DataLoader from 'dataloader';
import type { DocumentNode } from 'graphql';
import PQueue from 'p-queue';
import type { PageMeter } from '../../paging/price/page-meter.ts';
import { printDocument } from '../../print-document.ts';
import type { UpstreamLink } from './upstream-link.ts';

/** A query for the upstream. */
export interface UpstreamQuery {
  readonly document: DocumentNode;
  readonly variables: Readonly<Record<string, unknown>>;
}

export type RequestLoader = DataLoader<UpstreamQuery, ExecutionResult, string>;

/** Of one operation in flight: one that asks for thousands of pages below its parents is not alone. */
const AT_A_TIME = 8;

/**
 * The queries of one operation: what is asked twice in it, by aliases or by two adapters over one page, is
 * sent once. Not for mutations. Results are shared, so nobody may change them.
 *
 * Requests end with the operation, by its signal, and not with the one walk that happened to ask first.
 */
export function createRequestLoader(
  { execute, price }: Pick<UpstreamLink, 'execute' | 'price'>,
  context: { readonly signal: AbortSignal; readonly pages: PageMeter; readonly cause?: unknown },
): RequestLoader {
  const { signal, pages } = context;
  const asking = { ...context, caller: pages.account.name };
  const queue = new PQueue({ concurrency: AT_A_TIME });
  return new DataLoader(
    (queries) =>
      Promise.all(
        queries.map(async ({ document, variables }) => {
          pages.pay(price(document)(variables));
          const request = { document, variables, operationType: 'query', context: asking };
          return queue.add(() => execute(request as ExecutionRequest), { signal });
        }),
      ),
    {
      // One by one: a batch would hold back the first answer until the last has come.
      batch: false,
      // Hashed: a drain keeps one key for each page, and callers decide how long their queries are.
      cacheKeyFn: ({ document, variables }) =>
        hash('sha256', `${printDocument(document)}\n${JSON.stringify(variables)}`),
    },
  );
}
