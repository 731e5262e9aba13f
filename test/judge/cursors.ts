import { Kind, parse, print, visit } from 'graphql';
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

const MARK = 'cursor of ';

/**
 * Each side has its own cursors. An operation has this text in their place, from which each side makes its own cursor
 * (see `withCursors`).
 */
export function cursorOf(origin: Origin): string {
  return `${MARK}${JSON.stringify(origin)}`;
}

/** Whether a text can be a cursor of the gateway. No other text of the services of the judge is like it. */
export function isCursor(text: string): boolean {
  return /^[\w-]{40,}$/.test(text);
}

/** Replaces what stands for cursors by cursors that this side itself gave before. */
export function withCursors(ask: Ask): Ask {
  const known = new Map<string, Promise<string | null>>();
  const filled: Ask = async (operation) => ask(await fill(operation));
  return filled;

  async function fill({ query, variables }: Operation): Promise<Operation> {
    if (!query.includes(MARK) && !JSON.stringify(variables).includes(MARK))
      return { query, variables };
    const texts = new Set<string>();
    const document = parse(query, { noLocation: true });
    visit(document, {
      StringValue: ({ value }) => void (value.startsWith(MARK) && texts.add(value)),
    });
    for (const value of Object.values(variables)) if (isMarked(value)) texts.add(value);
    const cursors = new Map<string, string | null>();
    for (const text of texts) cursors.set(text, await cursorFor(text));
    const written = visit(document, {
      StringValue: (node) => {
        const cursor = cursors.get(node.value);
        if (cursor === undefined) return undefined;
        return cursor === null ? { kind: Kind.NULL } : { ...node, value: cursor };
      },
    });
    const entries = Object.entries(variables).map(([name, value]) => [
      name,
      isMarked(value) ? cursors.get(value) : value,
    ]);
    return {
      query: print(written),
      variables: Object.fromEntries(entries) as Operation['variables'],
    };
  }

  function cursorFor(text: string): Promise<string | null> {
    const asked = known.get(text) ?? take(JSON.parse(text.slice(MARK.length)) as Origin);
    known.set(text, asked);
    return asked;
  }

  async function take({ via, field, args, at }: Origin): Promise<string | null> {
    const selection =
      at === 'page'
        ? 'pageInfo { endCursor }'
        : 'edges { cursor } pageInfo { startCursor endCursor }';
    const call = `list: ${field}${args.length > 0 ? `(${args.join(', ')})` : ''} { ${selection} }`;
    const query = via.reduceRight(
      (inner, step) => `${step.startsWith('...') ? step : `step: ${step}`} { ${inner} }`,
      call,
    );
    const { data } = await filled({ query: `{ ${query} }`, variables: {} });
    const list = listIn(data);
    if (!list) return null;
    if (at === 'page') return list.pageInfo?.endCursor ?? null;
    if (typeof at === 'string') return list.pageInfo?.[at] ?? null;
    return list.edges!.length === 0 ? null : list.edges![at % list.edges!.length]!.cursor;
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

function isMarked(value: unknown): value is string {
  return typeof value === 'string' && value.startsWith(MARK);
}
