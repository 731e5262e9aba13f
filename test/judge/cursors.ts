import type { Operation } from './operation.ts';

export interface Answer {
  readonly data?: unknown;
  readonly errors?: readonly AnsweredError[];
}

export interface AnsweredError {
  readonly message: string;
  readonly path?: readonly (string | number)[];
  readonly extensions?: Readonly<Record<string, unknown>>;
}

export type Ask = (operation: Operation) => Promise<Answer>;

/** Where a cursor is taken from: an earlier answer to this field, below the fields of `via`. */
interface Origin {
  readonly via: readonly string[];
  readonly field: string;
  readonly args: readonly string[];
  /** The index of an edge, of those that there are; one of `pageInfo`; or that of a page of the service. */
  readonly at: number | 'startCursor' | 'endCursor' | 'page';
}

const MARK = /"cursor-of-([\w-]+)"/g;

/**
 * Each side has its own cursors. An operation has this text in their place, from which each side makes its own cursor
 * (see `withCursors`).
 */
export function cursorOf(origin: Origin): string {
  return `cursor-of-${Buffer.from(JSON.stringify(origin)).toString('base64url')}`;
}

/** Whether a text can be a cursor of the gateway. No other text of the services of the judge is like it. */
export function isCursor(text: string): boolean {
  return /^[\w-]{40,}$/.test(text);
}

/** Replaces what stands for cursors by cursors that this side itself gave before. */
export function withCursors(ask: Ask): Ask {
  const known = new Map<string, Promise<string | null>>();
  const filled: Ask = async (operation) => {
    const { query, variables } = operation;
    const values = JSON.parse(await fill(JSON.stringify(variables))) as Operation['variables'];
    return ask({ ...operation, query: await fill(query), variables: values });
  };
  return filled;

  async function fill(text: string): Promise<string> {
    const cursors = new Map<string, string | null>();
    for (const [mark, origin] of text.matchAll(MARK)) {
      const asked =
        known.get(mark) ?? take(JSON.parse(Buffer.from(origin!, 'base64url').toString()));
      known.set(mark, asked);
      cursors.set(mark, await asked);
    }
    return text.replaceAll(MARK, (mark) => JSON.stringify(cursors.get(mark)));
  }

  async function take({ via, field, args, at }: Origin): Promise<string | null> {
    const positions = at === 'page' ? 'endCursor' : 'startCursor endCursor';
    const selection = `${at === 'page' ? '' : 'edges { cursor } '}pageInfo { ${positions} }`;
    const call = `list: ${field}${args.length > 0 ? `(${args.join(', ')})` : ''} { ${selection} }`;
    const query = via.reduceRight(
      (inner, step) => `${step.startsWith('...') ? step : `step: ${step}`} { ${inner} }`,
      call,
    );
    const { data } = await filled({ query: `{ ${query} }`, variables: {} });
    const { edges = [], pageInfo } = listIn(data) ?? {};
    if (typeof at === 'number') return edges[at % edges.length]?.cursor ?? null;
    return pageInfo?.[at === 'page' ? 'endCursor' : at] ?? null;
  }
}

interface List {
  readonly edges?: readonly { readonly cursor: string }[];
  readonly pageInfo?: Readonly<Record<string, string | null>>;
}

function listIn(data: unknown): List | undefined {
  const { step, list } = (data ?? {}) as { readonly step?: unknown; readonly list?: List };
  return step === undefined || step === null ? (list ?? undefined) : listIn(step);
}
